"""Tests scrapy_webtwin in Scrapy over weeks of a site on loopback whose mirrors die, drift and
return: weeks.py WEBTWIN

An original has four mirrors, each on a port of its own. After a crawl of everything, a spider obeys
the list for four weeks, and its pages are run and compared each week. The reports must equal the
planted history, and no existing mirror may be `missing`. Needs `pip install scrapy`.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from urllib.parse import urlsplit

import local_site

WEBTWIN = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent
PAGES = 40
MIRRORS = ["stays", "dies", "drifts", "returns"]

# Weeks in which a mirror is absent or has other texts, and the expected report of each week's
# comparison.
GONE = {"dies": [2, 3, 4], "returns": [2]}
DRIFTED = {"drifts": [2, 3, 4]}
TOLD = {
    1: {"stays": "lives", "dies": "lives", "drifts": "lives", "returns": "lives"},
    2: {"stays": "lives", "dies": "missing", "drifts": "drifted", "returns": "missing"},
    3: {"stays": "lives", "dies": "died", "returns": "lives"},
    4: {"stays": "lives", "returns": "lives"},
}


class Host:
    """The original or a mirror: a manual of pages that link in a ring, at paths of its own."""

    def __init__(self, name):
        self.name, self.week, self.fetched, self.server = name, 0, [], None
        self.port = self.start()
        self.root = f"http://127.0.0.1:{self.port}/"

    def start(self, port=0):
        host = self

        class Handler(local_site.Page):
            def do_GET(self):
                host.fetched.append(self.path)
                data = host.page(self.path)
                self.answer(data, 200 if data else 404)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.server.server_address[1]

    def is_there(self):
        return self.week not in GONE.get(self.name, [])

    def to(self, week):
        """Simulates an absent mirror, which refuses connections."""
        was, self.week = self.is_there(), week
        self.fetched.clear()
        if was and not self.is_there():
            self.server.shutdown()
            self.server.server_close()
        elif self.is_there() and not was:
            self.start(self.port)

    def page(self, path):
        if not path.startswith("/manual/"):
            return b""
        number = int(path.rpartition("/")[2])
        says = f"{self.name} {self.week}" if self.week in DRIFTED.get(self.name, []) else "manual"
        line = lambda at: f"<p>Line {at} of page {number} says {number * at + 37} as {says} says.</p>"
        lines = "".join(map(line, range(40)))
        next_page = f'<a href="/manual/{(number + 1) % PAGES}">next</a>'
        return f"<html><title>Page {number}</title><body>{lines}{next_page}</body></html>".encode()


class Portal(Host):
    """Returns links to every page of the manuals, mirrors first, so that a spider sees the links to
    pages that it must probe."""

    def page(self, path):
        links = (f"{host.root}manual/{number}" for host in self.linked for number in range(PAGES))
        return ("<html><body>" + "".join(f'<a href="{link}">{link}</a> ' for link in links) + "</body></html>").encode()


SPIDER = """
import json, sys, scrapy
from scrapy.crawler import CrawlerProcess
import scrapy_webtwin
class Plain(scrapy.Spider):
    name = "plain"
    def parse(self, response):
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        self.out.write(json.dumps({"url": response.url, "html": response.text, "fetch_time": int(self.time)}) + "\\n")
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse)
class Obeys(scrapy_webtwin.ObeysWebtwin, Plain):
    name = "obeys"
start, out, time, exports = sys.argv[1:]
settings = {"LOG_LEVEL": "CRITICAL", "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False,
    "WEBTWIN_EXPORTS": exports}
process = CrawlerProcess(settings)
crawler = process.create_crawler(Obeys if exports else Plain)
with open(out, "w") as file:
    process.crawl(crawler, start_urls=[start], out=file, time=time)
    process.start()
print(json.dumps({name: value for name, value in crawler.stats.get_stats().items() if name.startswith("webtwin/")}))
"""


def crawl(at, week, portal, exports):
    """A crawl into week-N.jsonl; what the middlewares counted."""
    out, time = at / f"week-{week}.jsonl", 1_700_000_000 + week * 7 * 86_400
    (at / "spider.py").write_text(SPIDER)
    command = [sys.executable, str(at / "spider.py"), portal.root, str(out), str(time), exports]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def webtwin(*arguments):
    done = subprocess.run([WEBTWIN, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def lines(path):
    return path.read_text().splitlines()


def main():
    original = Host("original")
    mirrors = [Host(name) for name in MIRRORS]
    portal = Portal("portal")
    portal.linked = [*mirrors, original]
    of_port = {host.port: host for host in (original, *mirrors)}
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        for week in range(5):
            for host in (original, *mirrors, portal):
                host.to(week)
            before = at / (f"diff-{week - 1}" if week > 1 else "run-0") if week else None
            stats = crawl(at, week, portal, str(before or ""))
            run = ["run", "--state", at / "state", "--input", at / f"week-{week}.jsonl", "--output", at / f"run-{week}"]
            if before is None:
                assert all(len(host.fetched) == PAGES for host in (original, *mirrors)) and not stats, stats
                # The original must be kept, whatever the first crawl decides.
                webtwin(*run, "--set", f'keep.prefer=["{original.root}*"]')
                continue
            # A page on the list was fetched if, and only if, it is a probe of an existing mirror.
            revisit = before / "exports" / "revisit.txt"
            probes = set(lines(revisit)) if revisit.exists() else set()
            assert stats.get("webtwin/probes", 0) == len(probes) and (week == 1 or probes), (week, stats)
            prefixes, urls = (lines(before / "exports" / name) for name in ("prefixes.txt", "urls.txt"))
            listed = lambda url: url in urls or any(url.startswith(prefix) for prefix in prefixes)
            # All entries of a mirror that has ended are off the list, and those of a returned
            # mirror are on it again.
            off = {2: [], 3: ["dies", "drifts", "returns"], 4: ["dies", "drifts"]}.get(week, [])
            for host in mirrors:
                on = sum(listed(f"{host.root}manual/{number}") for number in range(PAGES))
                assert on == (0 if host.name in off else PAGES), (week, host.name, on)
            fetched = [host.root + path[1:] for host in of_port.values() for path in host.fetched]
            twice = sorted(url for url in set(fetched) if fetched.count(url) > 1)
            assert not twice, (week, "fetched twice", twice)
            on_list = {url for url in fetched if listed(url)}
            wanted = {url for url in probes if of_port[urlsplit(url).port].is_there()}
            assert on_list <= wanted and wanted <= set(fetched), (week, on_list - wanted, wanted - set(fetched))

            sets = ["recrawl.avoided=" + ("probed" if week > 1 else "yes")]
            sets = [f"--set={one}" for one in [*sets, f'keep.prefer=["{original.root}*"]']]
            webtwin(*run, "--diff", at / f"diff-{week}", *sets)
            rows = webtwin("show", at / f"diff-{week}", "mirrors_changed", "--json").splitlines()
            told = {}
            for row in map(json.loads, rows):
                name = of_port[urlsplit(row["prefix"]).port].name
                told.setdefault(name, []).append(row["what"])
            print(week, "probes", len(probes), "fetched", len(fetched), told, flush=True)
            assert told.pop("original") == ["lives"], told
            for name, what in TOLD[week].items():
                assert told.get(name) == [what], (week, name, told)
            for host in mirrors:
                gone = {"missing", "died"} & set(told.get(host.name, []))
                assert not (gone and host.is_there()), (week, host.name, told)
    print("four weeks: exactly the deaths, drifts and returns were reported")


main()
