"""Outputs for tests: the local disk, and servers on loopback that simulate object stores."""

import base64
import datetime
import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def started(command, call):
    """Waits until `call` succeeds, for at most two minutes."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            call()
            return server
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{command[0]} does not answer")


class Disk:
    """The local disk."""

    name = "local disk"

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="outputs-"))

    def url(self, name):
        return str(self.folder / name)

    def files(self, name):
        root = self.folder / name
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def close(self):
        shutil.rmtree(self.folder)


class Server:
    """An object store with a port of its own."""

    def __init__(self, command, container):
        self.port = free_port()
        self.server = started(command(self.port), lambda: self.call("PUT", container))

    def call(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers=self.headers(method, path))
        answer = connection.getresponse()
        body = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {body[:200]}")
        return body

    def close(self):
        self.server.kill()
        self.server.wait()


class S3(Server):
    """moto, from PyPI."""

    name = "moto S3"

    def __init__(self):
        super().__init__(lambda port: [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], "/out")
        os.environ.update(
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.port}",
            AWS_ACCESS_KEY_ID="id",
            AWS_SECRET_ACCESS_KEY="secret",
            AWS_REGION="us-east-1",
        )

    def headers(self, *_):
        # Moto reads the credentials but does not check signatures.
        return {"Authorization": "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request"}

    def url(self, name):
        return f"s3://out/{name}"

    def files(self, name):
        listed = xml.etree.ElementTree.fromstring(self.call("GET", f"/out?list-type=2&prefix={name}/"))
        keys = [key.text for key in listed.iter("{http://s3.amazonaws.com/doc/2006-03-01/}Key")]
        assert len(keys) < 1000
        return {key[len(name) + 1 :]: self.call("GET", f"/out/{key}") for key in keys}


class Azure(Server):
    """Azurite from npm. AZURITE is the path of its `azurite-blob`. Its port is the one that clients
    use for an emulator."""

    name = "Azurite"
    account = "devstoreaccount1"
    # The key that every emulator has.
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="azurite-")
        program = os.environ.get("AZURITE", "azurite-blob")
        options = ["--silent", "--blobHost", "127.0.0.1", "--skipApiVersionCheck", "--disableTelemetry"]
        command = [program, *options, "--location", self.folder, "--blobPort"]
        super().__init__(lambda port: [*command, str(port)], f"/{self.account}/out?restype=container")
        os.environ.update(
            AZURE_STORAGE_USE_EMULATOR="true",
            AZURITE_BLOB_STORAGE_URL=f"http://127.0.0.1:{self.port}",
            AZURE_STORAGE_ACCOUNT_NAME=self.account,
            AZURE_STORAGE_ACCOUNT_KEY=self.key,
        )

    def headers(self, method, path):
        path, _, query = path.partition("?")
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        fields = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
        said = "".join(f"{name}:{value}\n" for name, value in fields.items()) + f"/{self.account}{path}"
        said += "".join("\n" + part.replace("=", ":", 1) for part in sorted(query.split("&")) if part)
        text = method + "\n" * 12 + said
        digest = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return fields | {"Authorization": f"SharedKey {self.account}:{base64.b64encode(digest).decode()}"}

    def url(self, name):
        return f"az://out/{name}"

    def files(self, name):
        listed = self.call("GET", f"/{self.account}/out?comp=list&prefix={name}/&restype=container")
        keys = [key.text for key in xml.etree.ElementTree.fromstring(listed).iter("Name")]
        return {key[len(name) + 1 :]: self.call("GET", f"/{self.account}/out/{key}") for key in keys}

    def close(self):
        super().close()
        shutil.rmtree(self.folder)


class Careless(S3):
    """moto behind a proxy that implements conditional creation as a check followed by a delayed
    write, so that no commit is safe."""

    name = "moto S3 without atomic creation"

    def __init__(self):
        super().__init__()
        store = self.port

        class Proxy(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if headers.pop("if-none-match", None):
                    asker = {"Authorization": headers["authorization"]}
                    if self.ask("HEAD", headers=asker)[0].status == 200:
                        self.send_response(412)
                        self.send_header("Content-Length", "0")
                        return self.end_headers()
                    time.sleep(0.2)
                answer, said = self.ask(self.command, body, headers)
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def ask(self, method, body=None, headers=None):
                connection = http.client.HTTPConnection("127.0.0.1", store, timeout=60)
                connection.request(method, self.path, body=body, headers=headers)
                answer = connection.getresponse()
                return answer, answer.read()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

            def log_message(self, *_):
                pass

        self.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{self.proxy.server_port}"


STORES = {"disk": Disk, "s3": S3, "az": Azure, "careless": Careless}
