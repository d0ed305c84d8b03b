"""Middlewares for Scrapy: one skips what webtwin found to be a copy, one writes links by the URL rules that it learned.

In settings.py, with this file where your spiders are imported from:

    DOWNLOADER_MIDDLEWARES = {"scrapy_webtwin.SkipCopies": 50}
    SPIDER_MIDDLEWARES = {"scrapy_webtwin.RewriteUrls": 40}
    WEBTWIN_EXPORTS = "out/exports"

The first reads prefixes.txt and urls.txt, and looks each URL up in sets: its cost does not grow with the lists. The second reads
url-substitutions.tsv; it changes links that spiders follow, but no targets of redirects, so a redirect from the rewritten URL to one
that a rule rewrites is followed as it is. Requests with meta={"webtwin": False} pass both.
"""

import os
import re
from urllib.parse import urldefrag, urlsplit

from scrapy import Request
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


class ReadsExports:
    @classmethod
    def from_crawler(cls, crawler):
        folder = crawler.settings.get("WEBTWIN_EXPORTS")
        if not folder:
            raise NotConfigured("WEBTWIN_EXPORTS is not set")
        return cls(folder, crawler.stats)


class SkipCopies(ReadsExports):
    def __init__(self, folder, stats):
        self.copies, self.stats = CopiesToSkip(folder), stats

    def process_request(self, request, spider=None):
        if request.meta.get("webtwin", True) and request.url in self.copies:
            self.stats.inc_value("webtwin/skipped")
            raise IgnoreRequest("webtwin: a copy of a page that stays")


class UrlRules:
    """Substitutions by registered domain, in the order in which they are made."""

    def __init__(self, folder):
        self.of_domain = {}
        with open(os.path.join(folder, "url-substitutions.tsv"), encoding="utf-8") as file:
            next(file)
            for line in file:
                domain, pattern, substitution = line.rstrip("\n").split("\t")
                # Java's $1 and \$ as Python writes them.
                template = re.sub(r"\\(.)|\$([0-9])", self.token, substitution)
                self.of_domain.setdefault(domain, []).append((re.compile(pattern), template))

    @staticmethod
    def token(match):
        return match[1].replace("\\", "\\\\") if match[1] else f"\\g<{match[2]}>"

    def rewrite(self, url):
        url = urldefrag(url).url
        name = urlsplit(url).hostname or ""
        while name and name not in self.of_domain:
            name = name.partition(".")[2]
        for pattern, template in self.of_domain.get(name, ()):
            url = pattern.sub(template, url)
        return url


class RewriteUrls(ReadsExports):
    def __init__(self, folder, stats):
        self.rules, self.stats = UrlRules(folder), stats

    def rewritten(self, found):
        if not isinstance(found, Request) or found.method != "GET" or not found.meta.get("webtwin", True):
            return found
        url = self.rules.rewrite(found.url)
        if url == urldefrag(found.url).url:
            return found
        self.stats.inc_value("webtwin/rewritten")
        return found.replace(url=url)

    def process_spider_output(self, response, result, spider=None):
        for found in result:
            yield self.rewritten(found)

    async def process_spider_output_async(self, response, result, spider=None):
        async for found in result:
            yield self.rewritten(found)
