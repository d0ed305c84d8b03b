"""A Scrapy spider that follows every link on two local servers, and writes the URLs it fetched to -a out=FILE."""

import scrapy

SERVERS = ("http://127.0.0.1:18001/", "http://127.0.0.1:18002/")
NO_PAGES = (".txt", ".gz", ".png", ".gif", ".svg", ".css", ".js")


class Spider(scrapy.Spider):
    name = "everything"
    start_urls = list(SERVERS)

    def __init__(self, out, **arguments):
        super().__init__(**arguments)
        self.out, self.fetched = out, set()

    def parse(self, response):
        self.fetched.add(response.url)
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        for reference in response.css("a::attr(href), link::attr(href)").getall():
            url = response.urljoin(reference.split("#")[0])
            if url.startswith(SERVERS) and not url.endswith(NO_PAGES):
                yield scrapy.Request(url)

    def closed(self, reason):
        with open(self.out, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(self.fetched)))
