"""Feeds the pages of a Scrapy crawl to `webtwin live`, and skips the copies that it reports.

    DOWNLOADER_MIDDLEWARES = {"webtwin_live.FeedAndObey": 40}
    WEBTWIN_URL = "http://127.0.0.1:8601"
    WEBTWIN_KEY = "..."            # if the server requires one
    WEBTWIN_TIMEOUT = 0.2          # seconds; after that the page is fetched

With a priority below 50, it handles requests before the filters of off-site links and of
robots.txt, and posts responses after redirects and retries.

Each request is looked up just before it is sent, not when its link is found, because the server
knows more by then. Requests that arrive while the server answers are looked up together. Seeds are
always fetched. A rewritten request keeps its callback, which receives the response of the other
URL. If that has no page, the original URL is requested after all.

Requests with meta={"webtwin": False} are neither looked up nor posted. Fails open: if the server
fails in any way, the crawl continues without it, `webtwin/failed` counts the failures, and
`webtwin/not_fed` counts the pages that the server has not received. Needs Scrapy 2.13 or later, the
asyncio reactor, which is its default, and `webtwin_scrapy.py` next to this file.
"""

import asyncio
import base64
import json

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.url import url_is_from_spider

from webtwin_scrapy import BATCH, Server

GATHERED = 0.1  # seconds for which pages are gathered
PAGES = 50  # pages in a body
BYTES = 8 << 20  # of one page and, but for the last page, of a body: the server takes 16 MiB
PENDING = 64 << 20  # bytes that wait for the server; what comes beyond is not fed
FEED_TIMEOUT = 10.0  # seconds: a page has to be on disk, and no request waits for that

INSTEAD_OF = "webtwin_instead_of"
IS_ASKED = "webtwin_is_asked"


class FeedAndObey:
    """Downloader middleware: looks up requests and posts responses."""

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def __init__(self, crawler):
        self.crawler, self.stats = crawler, crawler.stats
        self.asked, self.asking, self.advisor = [], asyncio.Lock(), Server(crawler)
        self.pages, self.bytes, self.feeding, self.fed = [], 0, None, Server(crawler, FEED_TIMEOUT)
        # URLs that gave no page, and requests that were dropped because their substitute URL was
        # already being fetched.
        self.gone, self.waiting = set(), {}
        crawler.signals.connect(self.request_dropped, signal=signals.request_dropped)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    def is_ours(self, request):
        # Scrapy's own requests, such as for robots.txt, have no callback.
        return request.method == "GET" and request.callback is not NO_CALLBACK and request.meta.get("webtwin", True)

    async def process_request(self, request, spider=None):
        meta = request.meta
        if not self.is_ours(request) or meta.get("is_start_request") or IS_ASKED in meta:
            return None
        verdict, _, url = (await self.ask(request.url)).partition("\t")
        if verdict == "skip":
            self.stats.inc_value("webtwin/live_skipped")
            raise IgnoreRequest("webtwin: a copy has been fetched, or the URL has no page")
        if verdict == "rewrite" and url not in self.gone and self.is_on_site(url):
            self.stats.inc_value("webtwin/live_rewritten")
            marks = {IS_ASKED: True, INSTEAD_OF: request.url}
            return request.replace(url=url, dont_filter=False, meta={**meta, **marks})
        return None

    async def process_response(self, request, response, spider=None):
        if not self.is_ours(request):
            return response
        self.feed(response)
        return self.stood_for(request, response.status < 400) or response

    def process_exception(self, request, exception, spider=None):
        return self.stood_for(request, False) if self.is_ours(request) else None

    def is_on_site(self, url):
        spider = self.crawler.spider
        return not getattr(spider, "allowed_domains", None) or url_is_from_spider(url, spider)

    async def ask(self, url):
        """Returns the server's line about a URL, or `fetch` if there is no answer."""
        question = [url, None]
        self.asked.append(question)
        async with self.asking:
            while question[1] is None:
                some, self.asked = self.asked[:BATCH], self.asked[BATCH:]
                body = "\n".join(url for url, _ in some).encode()
                text = await self.advisor.post("/v1/pages.txt", "text/plain; charset=utf-8", body)
                lines = [] if text is None else text.decode().splitlines()
                for at, one in enumerate(some):
                    one[1] = lines[at] if len(lines) == len(some) else "fetch"
        return question[1]

    def stood_for(self, request, has_page):
        """If the URL of a request has no page, requests the URLs that it replaced. Returns the
        requests that the request replaced."""
        url = request.meta.get("redirect_urls", [request.url])[0]
        waiting = self.waiting.pop(url, [])
        if has_page:
            return None
        self.gone.add(url)
        for other in waiting:
            self.crawler.engine.crawl(original(other))
        return original(request) if INSTEAD_OF in request.meta else None

    def request_dropped(self, request, spider):
        """Stores a request whose substitute URL is being fetched, or has been fetched."""
        if INSTEAD_OF not in request.meta:
            return
        if request.url in self.gone:
            self.crawler.engine.crawl(original(request))
        else:
            self.waiting.setdefault(request.url, []).append(request)

    def feed(self, response):
        """Passes a response to the task that posts responses."""
        media = response.headers.get("Content-Type", b"").decode("latin-1")
        page = {"url": response.url, "status": response.status, "content_type": media}
        size = len(response.body) * 4 // 3
        if size > BYTES or self.bytes + size > PENDING:
            self.stats.inc_value("webtwin/not_fed")
            return
        line = json.dumps({**page, "body_base64": base64.b64encode(response.body).decode()}) + "\n"
        self.pages.append(line.encode())
        self.bytes += len(self.pages[-1])
        if self.feeding is None or self.feeding.done():
            self.feeding = asyncio.create_task(self.post_pages())

    async def post_pages(self):
        """Posts pages until none is left."""
        while self.pages:
            if len(self.pages) < PAGES:
                await asyncio.sleep(GATHERED)
            some, size = 0, 0
            while some < min(len(self.pages), PAGES) and size < BYTES:
                size += len(self.pages[some])
                some += 1
            body, self.pages = b"".join(self.pages[:some]), self.pages[some:]
            self.bytes -= size
            if await self.fed.post("/v1/pages", "application/x-ndjson", body) is not None:
                self.stats.inc_value("webtwin/live_fed", some)
            else:
                # Waiting pages would only wait equally long again.
                self.stats.inc_value("webtwin/not_fed", some + len(self.pages))
                self.pages, self.bytes = [], 0

    async def spider_closed(self):
        if self.feeding is not None:
            await self.feeding


def original(request):
    """Returns the original of a rewritten request. It is not looked up again."""
    meta = {**request.meta, IS_ASKED: True}
    url = meta.pop(INSTEAD_OF)
    for name in ("redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons", "retry_times"):
        meta.pop(name, None)
    return request.replace(url=url, dont_filter=True, meta=meta)
