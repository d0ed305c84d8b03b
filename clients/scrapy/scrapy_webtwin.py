"""Scrapy obeys what webtwin found: it skips copies, visits some of them again to see whether they still
are, and writes links by URL rules.

A spider gets all of it by a base class, with this file where your spiders are imported from:

    class Spider(scrapy_webtwin.ObeysWebtwin, scrapy.Spider):
        custom_settings = {"WEBTWIN_EXPORTS": "out"}     # or: scrapy crawl ... -s WEBTWIN_EXPORTS=diff-3

WEBTWIN_EXPORTS is the folder of a run, from the second crawl on that of the newest comparison, or the
folder `exports` in either. The parts can be named in settings.py, too:

    DOWNLOADER_MIDDLEWARES = {"scrapy_webtwin.SkipCopies": 50}
    SPIDER_MIDDLEWARES = {"scrapy_webtwin.Probes": 30, "scrapy_webtwin.RewriteUrls": 40}

SkipCopies reads prefixes.txt and urls.txt, and looks each URL up in sets: its cost does not grow with
the lists. Probes requests the pages of revisit-scrapy.jsonl, which a comparison has, before anything
else; they are on the list, so nothing may drop them. RewriteUrls reads url-substitutions.tsv; it changes
links that spiders follow, but no targets of redirects, so a redirect from the rewritten URL to one that
a rule rewrites is followed as it is. Requests with meta={"webtwin": False} pass all middlewares of
webtwin.
"""

import functools
import glob
import json
import os
import re
from urllib.parse import urldefrag, urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.utils.misc import load_object


def files_of_list(folder, name):
    """The file of a list, or the numbered parts of a large one."""
    stem, extension = os.path.splitext(name)
    parts = glob.glob(os.path.join(glob.escape(folder), stem + "-" + 5 * "[0-9]" + "*" + extension))
    return sorted(parts) or [os.path.join(folder, name)]


class CopiesToSkip:
    """Whole URLs, and prefixes that end in a slash."""

    def __init__(self, folder):
        def lines(name):
            found = set()
            for path in files_of_list(folder, name):
                with open(path, encoding="utf-8") as file:
                    found.update(line.rstrip("\n") for line in file)
            return found

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


@functools.cache
def copies_of(folder):
    """The lists of a folder, which several middlewares need, once."""
    return CopiesToSkip(folder)


class ReadsExports:
    @classmethod
    def from_crawler(cls, crawler):
        folder = crawler.settings.get("WEBTWIN_EXPORTS")
        if not folder:
            raise NotConfigured("WEBTWIN_EXPORTS is not set")
        within = os.path.join(folder, "exports")
        return cls(within if os.path.isdir(within) else folder, crawler.stats)


class SkipCopies(ReadsExports):
    def __init__(self, folder, stats):
        self.copies, self.stats = copies_of(folder), stats

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


class Probes(ReadsExports):
    """Requests the pages that are to be visited again, and sees to it that they come as they are now."""

    def __init__(self, folder, stats):
        self.path, self.copies, self.stats = os.path.join(folder, "revisit-scrapy.jsonl"), copies_of(folder), stats

    def requests(self):
        # A run has no such file: nothing was skipped before it.
        if not os.path.exists(self.path):
            return
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                probe = json.loads(line)
                self.stats.inc_value("webtwin/probes")
                # A link to a page on the list may have been seen, and skipped, before: the filter of
                # duplicates must let the probe pass all the same, as must that of hosts. And a cache
                # would answer for a mirror that is gone.
                meta = {"webtwin": False, "allow_offsite": True, "dont_cache": True}
                is_listed = probe["url"] in self.copies
                yield Request(probe["url"], priority=probe["priority"], dont_filter=is_listed, meta=meta)

    async def process_start(self, start):
        for request in self.requests():
            yield request
        async for found in start:
            yield found

    def process_start_requests(self, start_requests, spider):
        """The same for Scrapy before 2.13."""
        yield from self.requests()
        yield from start_requests


class ObeysWebtwin:
    """For a spider, before scrapy.Spider among its base classes: sets the middlewares of this module
    that are not set yet."""

    @classmethod
    def update_settings(cls, settings):
        super().update_settings(settings)
        if not settings.get("WEBTWIN_EXPORTS"):
            missing = "WEBTWIN_EXPORTS is not set; name the folder of a run, or of the newest comparison"
            raise ValueError(f"{cls.__name__}: {missing}")
        add(settings, "DOWNLOADER_MIDDLEWARES", SkipCopies, 50)
        add(settings, "SPIDER_MIDDLEWARES", Probes, 30)
        add(settings, "SPIDER_MIDDLEWARES", RewriteUrls, 40)


def add(settings, name, middleware, place):
    there = settings.getdict(name)
    if middleware not in map(load_object, there):
        settings.set(name, {**there, middleware: place}, max(settings.getpriority(name), 30))
