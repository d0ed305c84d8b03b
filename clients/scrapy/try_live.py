"""Tests webtwin_live in Scrapy against `webtwin live` and two origins on loopback: try_live.py
WEBTWIN

One origin has a manual; the other has a mirror of it and pages of its own, some of them within the
mirror. A crawl from both home pages must fetch every text, and few pages of the manual twice. If
the server is killed midway, it must fetch everything. Needs `pip install scrapy`.
"""

import http.client
import http.server
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import local_site

WEBTWIN = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent

MANUAL = [f"page-{n}.html" for n in range(120)]
CHAIN = [f"/own/{n}.html" for n in range(20)]
ONLY = [f"/pub/x/only-{n}.html" for n in range(10)]


def page(name, links):
    draw = random.Random(name)
    words = " ".join(f"w{draw.randrange(5000)}" for _ in range(150))
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return f"<html><title>{name}</title><body><p>{words}.</p>{anchors}</body></html>"


def onward(path):
    """Returns links of a page that only the second origin has."""
    if path in CHAIN[:-1]:
        # The manual begins a little earlier than its mirror, so the manual is kept.
        return [CHAIN[CHAIN.index(path) + 1], *(["/pub/x/page-0.html"] if path == CHAIN[0] else [])]
    # Half of them are next to a dead link to their counterpart in the manual, which is being
    # fetched when they are looked up.
    manual = f"http://127.0.0.1:{servers[0].server_address[1]}/manual"
    dead = [[f"{manual}/{only.rpartition('/')[2]}", only] for only in ONLY[:5]]
    return [*sum(dead, []), *ONLY[5:]] if path == CHAIN[-1] else []


class Site(local_site.Page):
    """The first origin has /manual/, whose pages form a binary tree of links. The second one has
    its mirror and CHAIN.

    The chain is longer than the height of the tree, so the advice exists before the pages at its
    end: pages within the mirror without a counterpart in the manual.
    """

    fetched = []
    midway = None
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        is_first = self.server is servers[0]
        folder, _, name = self.path.rpartition("/")
        body = None
        if self.path == "/":
            links = ["/manual/page-0.html"] if is_first else [CHAIN[0]]
            body = page(f"home {is_first}", links)
        elif folder == ("/manual" if is_first else "/pub/x") and name in MANUAL:
            below = MANUAL.index(name) * 2
            body = page(name, MANUAL[below + 1 : below + 3])
        elif not is_first and self.path in CHAIN + ONLY:
            body = page(self.path, onward(self.path))
        time.sleep(0.03)
        Site.fetched.append((is_first, self.path, body is not None))
        if Site.midway and len(Site.fetched) == 10:
            Site.midway()
        self.answer((body or "There is nothing.").encode(), 200 if body else 404)


SPIDER = """
import json, sys, scrapy
from scrapy.crawler import CrawlerProcess
class Spider(scrapy.Spider):
    name = "try"
    start_urls = sys.argv[2:]
    def parse(self, response):
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse)
process = CrawlerProcess(json.loads(sys.argv[1]))
crawler = process.create_crawler(Spider)
process.crawl(crawler)
process.start()
stats = crawler.stats.get_stats().items()
print(json.dumps({name: value for name, value in stats if name.startswith(("webtwin/", "spider_exceptions"))}))
"""


def crawl(folder, server, seeds):
    settings = {
        "DOWNLOADER_MIDDLEWARES": {"webtwin_live.FeedAndObey": 40},
        "WEBTWIN_URL": server,
        "WEBTWIN_TIMEOUT": 5.0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "CONCURRENT_REQUESTS": 4,
        # Breadth first, so that both origins reach the same pages at about the same time.
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
    Site.fetched.clear()
    # Scrapy reads the source file of a spider.
    (folder / "spider.py").write_text(SPIDER)
    command = [sys.executable, str(folder / "spider.py"), json.dumps(settings), *seeds]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE, check=True)
    stats = json.loads(done.stdout.splitlines()[-1])
    return [(is_first, path) for is_first, path, is_there in Site.fetched if is_there], stats


def serve(index):
    command = [WEBTWIN, "live", str(index), "--listen", "127.0.0.1:0"]
    serving = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in serving.stderr:
        if "http://" in line:
            threading.Thread(target=serving.stderr.read, daemon=True).start()
            return serving, line[line.index("http://") :].split()[0].rstrip("/")
    raise SystemExit(f"webtwin live ended with {serving.wait()}")


def advice(server):
    connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=10)
    connection.request("GET", "/v1/advice?since=0")
    return json.loads(connection.getresponse().read())["advice"]


servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) for _ in range(2)]


def main():
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    seeds = [f"http://127.0.0.1:{server.server_address[1]}/" for server in servers]
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        serving, server = serve(at / "index")
        try:
            fetched, stats = crawl(at, server, seeds)
            names = [path.rpartition("/")[2] for _, path in fetched if not path.startswith("/own/")]
            manual = [name for name in names if name in MANUAL]
            assert set(manual) == set(MANUAL), sorted(set(MANUAL) - set(manual))
            twice = len(manual) - len(MANUAL)
            assert twice < 35, (twice, stats)
            assert {path for is_first, path in fetched if not is_first} >= {"/", *CHAIN, *ONLY}, fetched
            assert len(Site.fetched) == len(set(Site.fetched)), "nothing is fetched twice"
            # If the manual lacks a page, the mirror's page is fetched instead. A probe is fetched
            # from its own location.
            dead = {path for _, path, is_there in Site.fetched if not is_there}
            assert dead <= {only.replace("pub/x", "manual") for only in ONLY} and len(dead) >= 5, dead
            assert stats["webtwin/live_skipped"] and stats["webtwin/live_rewritten"] >= 5, stats
            assert "webtwin/failed" not in stats, stats
            assert "mirror" in [one["kind"] for one in advice(server)], advice(server)
        finally:
            serving.terminate()
            assert serving.wait(20) == 0

        serving, server = serve(at / "another")
        Site.midway = serving.kill
        fetched, stats = crawl(at, server, seeds)
        assert serving.wait(20) != 0 and stats["webtwin/failed"] > 0, stats
        assert len(fetched) == len(set(fetched)) == 2 + 2 * len(MANUAL) + len(CHAIN + ONLY), (len(fetched), stats)
    print(f"{twice} of {len(MANUAL)} pages of the mirror fetched, every text once; server killed: {len(fetched)} pages")


main()
