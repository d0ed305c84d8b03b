"""What a result holds, for comparison."""
import hashlib, os


def files(folder):
    """Every file below a folder but the manifest, by name, as a hash."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if name != 'manifest.json':
                with open(os.path.join(at, name), 'rb') as file:
                    found[os.path.relpath(os.path.join(at, name), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found
