"""The processes of a run on this machine, connected over loopback."""

import socket


def free_ports(count):
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in listening]
    for one in listening:
        one.close()
    return ports


def calls(words, processes, workers, folder, more=""):
    """Returns the command of each process. The cluster file is in the folder, with `more` lines of
    TOML."""
    if processes == 1:
        return [[*words, "--workers", str(workers)]]
    cluster = folder / "cluster.toml"
    hosts = "".join(f'[[process]]\naddress = "127.0.0.1:{port}"\n' for port in free_ports(processes))
    cluster.write_text(f'workers = {workers}\ndeadline = "300s"\n{more}{hosts}')
    return [[*words, "--cluster", str(cluster), "--process", str(number)] for number in range(processes)]
