"""Middlewares that query a webtwin server before Scrapy follows links, and after it has fetched a
page.

    SPIDER_MIDDLEWARES = {"webtwin_scrapy.SkipKnownCopies": 50}
    DOWNLOADER_MIDDLEWARES = {"webtwin_scrapy.DropKnownTexts": 50}   # only if the index has --chunks or exact copies suffice
    WEBTWIN_URL = "http://127.0.0.1:8600"
    WEBTWIN_KEY = "..."            # if the server requires one
    WEBTWIN_TIMEOUT = 0.2          # seconds; after that everything is fetched

Requests with meta={"webtwin": False} pass both, which the probes of `scrapy_webtwin.py` require.

Both fail open: if the server fails in any way, the crawl continues without it, and `webtwin/failed`
counts the failures. Needs the asyncio reactor, which is Scrapy's default, and nothing but the
standard library.
"""

import asyncio
import http.client
import json
import threading
from urllib.parse import quote, urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured

BATCH = 1000


class Server:
    """One persistent connection to the server. Queries run in a thread, so that only their caller
    waits."""

    def __init__(self, crawler, least_timeout=0.0):
        settings = crawler.settings
        url = urlsplit(settings.get("WEBTWIN_URL") or "")
        if not url.hostname:
            raise NotConfigured("WEBTWIN_URL is not set")
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        timeout = max(settings.getfloat("WEBTWIN_TIMEOUT", 0.2), least_timeout)
        self.make = lambda: kind(url.hostname, url.port, timeout=timeout)
        key = settings.get("WEBTWIN_KEY")
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.stats, self.lock, self.connection = crawler.stats, threading.Lock(), None

    def ask(self, path, media, body):
        with self.lock:
            for again in (True, False):
                kept = self.connection is not None
                try:
                    self.connection = self.connection or self.make()
                    self.connection.request("POST", path, body, {**self.headers, "Content-Type": media})
                    response = self.connection.getresponse()
                    text = response.read()
                    if response.status != 200:
                        raise OSError(f"status {response.status}")
                    return text
                except (OSError, http.client.HTTPException):
                    self.close()
                    # A persistent connection may have been closed meanwhile. Only a new connection
                    # that fails means that there is no answer.
                    if not (again and kept):
                        raise

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    async def post(self, path, media, body):
        """Returns the answer, or None if there is none."""
        try:
            return await asyncio.to_thread(self.ask, path, media, body)
        except (OSError, http.client.HTTPException):
            self.stats.inc_value("webtwin/failed")
            return None


class SkipKnownCopies:
    """Spider middleware: sends one request to the server for all links of a page."""

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def __init__(self, crawler):
        self.server, self.stats = Server(crawler), crawler.stats

    async def skipped(self, urls):
        found = {}
        for at in range(0, len(urls), BATCH):
            some = urls[at : at + BATCH]
            text = await self.server.post("/v1/pages.txt", "text/plain; charset=utf-8", "\n".join(some).encode())
            lines = [] if text is None else text.decode().splitlines()
            if len(lines) == len(some):
                found.update((url, line) for url, line in zip(some, lines) if line.split("\t")[0] == "skip")
        return found

    async def process_spider_output_async(self, response, result, spider=None):
        items = [item async for item in result]
        is_asked = lambda item: isinstance(item, Request) and item.meta.get("webtwin", True)
        skipped = await self.skipped([item.url for item in items if is_asked(item)])
        for item in items:
            if is_asked(item) and item.url in skipped:
                self.stats.inc_value("webtwin/skipped")
            else:
                yield item

    def process_spider_output(self, response, result, spider=None):
        raise NotConfigured("SkipKnownCopies needs asynchronous spider middlewares: Scrapy 2.7 or later")


class DropKnownTexts:
    """Downloader middleware: drops a page whose text is known elsewhere."""

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def __init__(self, crawler):
        self.server, self.stats = Server(crawler), crawler.stats

    async def process_response(self, request, response, spider=None):
        if not request.meta.get("webtwin", True):
            return response
        media = response.headers.get("Content-Type", b"").decode("latin-1")
        if response.status != 200 or media.split(";")[0].strip() not in ("text/html", "text/plain", "application/xhtml+xml"):
            return response
        text = await self.server.post("/v1/check?url=" + quote(response.url, safe=""), media, response.body)
        found = json.loads(text) if text else {}
        if found.get("action") == "skip":
            self.stats.inc_value(f"webtwin/dropped/{found['why']}")
            raise IgnoreRequest(f"{found['why']}: {found['keep']['url']} stays")
        return response
