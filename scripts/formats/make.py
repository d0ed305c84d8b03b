#!/usr/bin/env python3
"""Creates small crawls with common crawling tools, and collects the samples in source packages.

    usage: make.py FOLDER [REPOSITORY...]
    (needs: pip install warcio requests warcprox, wget; pip fetches the source package of pywb)

A site of a few pages with copies, a redirect, a 404 and an image is served on loopback, and crawled
by wget in three ways, by warcio's recorder, and twice through warcprox. Each REPOSITORY is a git
clone, of which all archives are collected. Used so far: iipc/jwarc, iipc/webarchive-commons,
chatnoir-eu/chatnoir-resiliparse (FastWARC), chatnoir-eu/copycat, richardlehane/webarchive (with
those of JWAT), webrecorder/warcio, webrecorder/warcio.js, webrecorder/py-wacz. The same crawls are
also packed as WACZ, xz and bzip2. Records as Browsertrix and Heritrix write them follow their
documentation; these crawlers are not run.
"""

import bz2
import functools
import http.server
import io
import lzma
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
import zipfile

SAMPLES = ["pywb"]
ENDINGS = (".warc", ".warc.gz", ".arc", ".arc.gz")


def page(number):
    words = " ".join(f"word{(number * 7919 + k * k * 31) % 9973}" for k in range(80))
    links = "".join(f'<a href="{k}.html">{k}</a> ' for k in range(6))
    return f"<html><head><title>{number}</title></head><body><p>{words}</p>{links}<a href=/moved>m</a></body></html>"


class Site(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(301)
            self.send_header("Location", "/docs/1.html")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


def serve(root):
    for folder in ("docs", "mirror"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number in range(6):
            (root / folder / f"{number}.html").write_text(page(number))
    (root / "docs" / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    home = '<a href="docs/0.html">d</a><a href="mirror/0.html">m</a><a href="gone">g</a><img src="docs/image.png">'
    (root / "index.html").write_text(f"<html><body>{home}</body></html>")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def wget(folder, name, url, *more):
    command = ["wget", "-q", "-r", "-l", "5", "-p", "--delete-after", "-P", str(folder / "wget"), "--warc-cdx"]
    subprocess.run([*command, f"--warc-file={folder / name}", *more, url], check=False)


def recorder(folder, url):
    from warcio.capture_http import capture_http  # must come before requests
    import requests

    with capture_http(str(folder / "warcio-recorder.warc.gz")):
        for path in ["", "docs/0.html", "docs/1.html", "mirror/1.html", "moved", "gone", "docs/image.png"]:
            requests.get(url + path)


def warcprox(folder, url):
    """Crawls twice through the proxy, which writes revisits for the second crawl, over one
    connection and over many."""
    work = folder / "warcprox"
    (work / "warcs").mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # warcprox refuses to fetch from loopback except in its own tests.
    start = "from warcprox import main, warcproxy; warcproxy.WarcProxyHandler.allow_localhost = True; main.main()"
    command = [sys.executable, "-c", start, "-p", str(port), "-b", "127.0.0.1", "-d", str(work / "warcs"), "-z",
               "-j", str(work / "dedup.db"), "--stats-db-file", str(work / "stats.db"), "-c", str(work / "ca.pem"),
               "--certs-dir", str(work / "certs"), "-q"]
    proxy = subprocess.Popen(command, cwd=work)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    for _ in range(2):
        for path in ["", "docs/0.html", "docs/1.html", "mirror/1.html", "moved", "gone", "docs/image.png"]:
            try:
                opener.open(url + path).read()
            except urllib.error.HTTPError:
                pass
        # Its writer must have seen a payload before it writes a revisit.
        time.sleep(2)
    proxy.send_signal(signal.SIGTERM)
    proxy.wait()
    for number, written in enumerate(sorted((work / "warcs").glob("*.warc.gz*"))):
        shutil.move(written, folder / f"warcprox-{number}.warc.gz")
    shutil.rmtree(work)


def of_repository(folder, repository):
    """Yields all archives in the newest commit of a clone."""
    git = ["git", "-C", repository]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], capture_output=True, text=True, check=True)
    name = pathlib.Path(repository.rstrip("/").removesuffix("/.git").removesuffix("/repo")).name
    for path in listed.stdout.split("\0"):
        if path.lower().endswith((*ENDINGS, ".wacz")):
            blob = subprocess.run([*git, "show", f"HEAD:{path}"], capture_output=True)
            if blob.returncode == 0:
                (folder / f"{name}--{path.replace('/', '-')}").write_bytes(blob.stdout)


def by_documentation(folder):
    """Writes kinds of records of Browsertrix (pageinfo, text, thumbnails) and Heritrix (dns,
    revisits of both profiles)."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    with open(folder / "by-documentation.warc.gz", "wb") as stream:
        writer = WARCWriter(stream, gzip=True, warc_version="WARC/1.1")
        head = lambda status: StatusAndHeaders(status, [("Content-Type", "text/html")], protocol="HTTP/1.1")

        def write(url, kind, payload, media=None, http=None, **lines):
            lines = {name.replace("_", "-"): value for name, value in lines.items()}
            record = writer.create_warc_record(
                url, kind, payload=io.BytesIO(payload), http_headers=http, warc_content_type=media or "",
                warc_headers_dict=lines)
            writer.write_record(record)
            return record.rec_headers

        body = page(1).encode()
        first = write("http://a.example/1", "response", body, http=head("200 OK"))
        digest, date = first.get_header("WARC-Payload-Digest"), first.get_header("WARC-Date")
        write("dns:a.example", "resource", b"20260101000000\na.example. 1 IN A 192.0.2.1\n", "text/dns")
        write("urn:pageinfo:http://a.example/1", "resource", b'{"pageid": "1"}', "application/json")
        write("urn:text:http://a.example/1", "resource", b"words", "text/plain")
        write("urn:thumbnail:http://a.example/1", "resource", b"\xff\xd8\xff", "image/jpeg")
        writer.write_record(writer.create_revisit_record(
            "http://b.example/1", digest, "http://a.example/1", date, http_headers=head("200 OK")))
        profile = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
        revisit = writer.create_revisit_record(
            "http://a.example/1", digest, "http://a.example/1", date, http_headers=head("304 Not Modified"))
        revisit.rec_headers.replace_header("WARC-Profile", profile)
        revisit.rec_headers.replace_header("WARC-Date", "2036-01-01T00:00:00.123Z")
        writer.write_record(revisit)


def samples(folder):
    for name in SAMPLES:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder)]
        subprocess.run([*pip, name], check=True)
        (package,) = folder.glob(f"{name}-*.tar.gz")
        with tarfile.open(package) as tar:
            for member in tar:
                path = pathlib.PurePath(member.name)
                if path.name.endswith(ENDINGS):
                    (folder / f"{name}-{path.name}").write_bytes(tar.extractfile(member).read())
        package.unlink()
    # A revisit of another URL, and its original.
    pair = [(folder / f"pywb-example-url-agnostic-{what}.warc.gz").read_bytes() for what in ("orig", "revisit")]
    (folder / "pywb-example-url-agnostic-both.warc.gz").write_bytes(b"".join(pair))


def packed(folder):
    """Packs the existing crawls in other containers."""
    two = ["wget.warc.gz", "pywb-iana.warc.gz"]
    with zipfile.ZipFile(folder / "two.wacz", "w", zipfile.ZIP_STORED) as package:
        for name in two:
            package.write(folder / name, f"archive/{name}")
        package.writestr("pages/pages.jsonl", '{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}\n')
        package.writestr("indexes/index.cdx", "", zipfile.ZIP_DEFLATED)
        package.writestr("datapackage.json", '{"profile": "data-package", "wacz_version": "1.1.1"}')
    plain = (folder / "wget-plain.warc").read_bytes()
    half = len(plain) // 2
    for ending, compress in [("xz", lzma.compress), ("bz2", bz2.compress)]:
        (folder / f"wget-plain.warc.{ending}").write_bytes(compress(plain[:half]) + compress(plain[half:]))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    url = serve(folder / "site")
    # This must run before warcio takes over the connections of this process.
    warcprox(folder, url)
    recorder(folder, url)
    wget(folder, "wget", url)
    wget(folder, "wget-plain", url, "--no-warc-compression")
    wget(folder, "wget-dedup", url, f"--warc-dedup={folder / 'wget.cdx'}")
    # A crawl and its repetition, which refers to it.
    both = [(folder / f"{name}.warc.gz").read_bytes() for name in ("wget", "wget-dedup")]
    (folder / "wget-and-dedup.warc.gz").write_bytes(b"".join(both))
    whole = (folder / "wget.warc.gz").read_bytes()
    (folder / "wget-torn.warc.gz").write_bytes(whole[:-200])
    by_documentation(folder)
    samples(folder)
    packed(folder)
    for repository in sys.argv[2:]:
        of_repository(folder, repository)


if __name__ == "__main__":
    main()
