"""Tests webtwin_scrapy in Scrapy against a served index and a small site on loopback: try.py
WEBTWIN

A site of an original, its mirror and an unknown page is crawled without webtwin, indexed, and
crawled again with it. The second crawl must not fetch the mirror. Without the server, it must fetch
everything. Needs `pip install scrapy`.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import local_site

WEBTWIN = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent

LINES = [f"Line {n} says {n * 37} and nothing that any other line says." for n in range(40)]


def page(number):
    words = "".join(f"<p>{line} It is of page {number}.</p>" for line in LINES)
    return f"<html><title>Page {number}</title><body><h1>Page {number}</h1>{words}</body></html>"


class Site(local_site.Page):
    """/a/ is the original and /b/ its mirror; /new/ is a copy that was added after the crawl, and
    /other a page of its own."""

    fetched = []
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        Site.fetched.append(self.path)
        parts = self.path.strip("/").split("/")
        if self.path == "/":
            links = [f"/a/{n}" for n in range(6)] + [f"/b/{n}" for n in range(6)] + ["/new/3", "/other"]
            body = "".join(f'<a href="{link}">{link}</a> ' for link in links)
        elif parts[0] in ("a", "b", "new") and len(parts) == 2:
            body = page(parts[1])
        elif self.path == "/other":
            body = "<p>" + "A page of its own, like none before it. " * 9
        else:
            self.send_error(404)
            return
        self.answer(body.encode())


SPIDER = """
import json, sys, scrapy
from scrapy.crawler import CrawlerProcess
class Spider(scrapy.Spider):
    name = "try"
    start_urls = [sys.argv[1]]
    seen = []
    def parse(self, response):
        self.seen.append(response.url)
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse)
settings = json.loads(sys.argv[2])
process = CrawlerProcess({"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False, **settings})
crawler = process.create_crawler(Spider)
process.crawl(crawler)
process.start()
stats = {name: value for name, value in crawler.stats.get_stats().items() if name.startswith("webtwin/")}
print(json.dumps({"seen": Spider.seen, "stats": stats}))
"""


def crawl(folder, site, server):
    settings = {}
    if server:
        settings = {
            "SPIDER_MIDDLEWARES": {"webtwin_scrapy.SkipKnownCopies": 50},
            "DOWNLOADER_MIDDLEWARES": {"webtwin_scrapy.DropKnownTexts": 50},
            "WEBTWIN_URL": server,
            "WEBTWIN_TIMEOUT": 5.0,
        }
    Site.fetched.clear()
    # Scrapy reads the source file of a spider.
    (folder / "spider.py").write_text(SPIDER)
    command = [sys.executable, str(folder / "spider.py"), site, json.dumps(settings)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return sorted(Site.fetched), sorted(url.removeprefix(site.rstrip("/")) for url in told["seen"]), told["stats"]


def main():
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{web.server_address[1]}/"
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        rows = [{"url": f"{site}{side}/{n}", "html": page(n)} for side in "ab" for n in range(6)]
        (at / "crawl.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        run = lambda *arguments: subprocess.run([WEBTWIN, *arguments], check=True, stderr=subprocess.DEVNULL)
        run("run", "--input", str(at / "crawl.jsonl"), "--output", str(at / "run"))
        run("index", str(at / "run"), "--output", str(at / "idx"), "--chunks")

        fetched, seen, stats = crawl(at, site, None)
        assert len(fetched) == 15 and len(seen) == 15 and not stats, (fetched, stats)

        serving = subprocess.Popen([WEBTWIN, "serve", str(at / "idx"), "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        try:
            server = serving.stderr.readline().split()[-1]
            fetched, seen, stats = crawl(at, site, server)
            # One of each two copies is fetched. The copy that is not in the index is fetched once
            # and dropped.
            assert len([path for path in fetched if path[:3] in ("/a/", "/b/")]) == 6, fetched
            assert "/other" in seen and "/new/3" in fetched and "/new/3" not in seen, (fetched, seen)
            assert stats == {"webtwin/skipped": 6, "webtwin/dropped/exact": 1}, stats
        finally:
            serving.terminate()
            assert serving.wait(20) == 0

        fetched, seen, stats = crawl(at, site, server)
        assert len(fetched) == 15 and len(seen) == 15 and stats["webtwin/failed"] > 0, (fetched, stats)
    print("without: 15 pages; with: 9 fetched, 6 skipped, 1 of the fetched dropped; server gone: 15 pages")


main()
