"""Contents of a result, for comparison."""
import hashlib, os


def files(folder):
    """Returns a hash of every file below a folder except the manifest, by name."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if name != 'manifest.json':
                with open(os.path.join(at, name), 'rb') as file:
                    found[os.path.relpath(os.path.join(at, name), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found
