"""A downloader middleware for Scrapy that skips what webtwin found to be a copy.

In settings.py, with this file where your spiders are imported from:

    DOWNLOADER_MIDDLEWARES = {"scrapy_webtwin.SkipCopies": 50}
    WEBTWIN_EXPORTS = "out/exports"

It reads prefixes.txt and urls.txt, and looks each URL up in sets: its cost does not grow with the lists. Requests with
meta={"webtwin": False} pass.
"""

import os
from urllib.parse import urldefrag

from scrapy.exceptions import IgnoreRequest, NotConfigured


class CopiesToSkip:
    """Whole URLs, and prefixes that end in a slash."""

    def __init__(self, folder):
        def lines(name):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return {line.rstrip("\n") for line in file}

        self.urls, self.prefixes = lines("urls.txt"), lines("prefixes.txt")

    def __contains__(self, url):
        url = urldefrag(url).url
        if url in self.urls:
            return True
        end = url.find("/", url.find("://") + 3)
        while end >= 0:
            if url[: end + 1] in self.prefixes:
                return True
            end = url.find("/", end + 1)
        return False


class SkipCopies:
    def __init__(self, folder, stats):
        self.copies, self.stats = CopiesToSkip(folder), stats

    @classmethod
    def from_crawler(cls, crawler):
        folder = crawler.settings.get("WEBTWIN_EXPORTS")
        if not folder:
            raise NotConfigured("WEBTWIN_EXPORTS is not set")
        return cls(folder, crawler.stats)

    def process_request(self, request, spider=None):
        if request.meta.get("webtwin", True) and request.url in self.copies:
            self.stats.inc_value("webtwin/skipped")
            raise IgnoreRequest("webtwin: a copy of a page that stays")
