"""A crawler that obeys the lists, and writes WARC files with revisit records as Heritrix and
Browsertrix do."""
import base64, hashlib, os, zlib
from urllib.parse import urlsplit

FILES = 3


def html(text, links):
    paragraphs = ''.join('<p>%s</p>\n' % line for line in text)
    anchors = ''.join('<a href="%s">%d</a>\n' % (link.replace('&', '&amp;'), n) for n, link in enumerate(links))
    return ('<html><body>\n%s%s</body></html>' % (paragraphs, anchors)).encode()


def gzip(content):
    member = zlib.compressobj(6, zlib.DEFLATED, 31)
    return member.compress(content) + member.flush()


def record(kind, url, date, http, more=()):
    seed = hashlib.sha1(('%s %s %s' % (kind, url, date)).encode()).hexdigest()
    identifier = '-'.join((seed[:8], seed[8:12], seed[12:16], seed[16:20], seed[20:32]))
    head = ['WARC/1.1', 'WARC-Type: ' + kind, 'WARC-Record-ID: <urn:uuid:%s>' % identifier, 'WARC-Target-URI: ' + url,
            'WARC-Date: ' + date, 'Content-Type: application/http; msgtype=response', *more, 'Content-Length: %d' % len(http)]
    return gzip('\r\n'.join(head).encode() + b'\r\n\r\n' + http + b'\r\n\r\n')


class Crawler:
    """Stores its list, the URLs it has fetched, and the digests and dates of its last crawl."""

    def __init__(self):
        self.prefixes, self.urls, self.known, self.last = set(), set(), set(), {}

    def skips(self, url):
        ends = [at + 1 for at, sign in enumerate(url) if sign == '/'] + [len(url)]
        return url in self.urls or any(url[:end] in self.prefixes for end in ends)

    def fetch(self, pages, probes, silent, date, folder):
        """Fetches all pages that are not on the list, and the probes; hosts in `silent` do not
        answer. Returns the fetched pages, and the state to use if this crawl counts."""
        os.makedirs(folder)
        hosts = {urlsplit(url).hostname for url in pages} - silent
        asked = {url for url in set(pages) | self.known if not self.skips(url)} | set(probes)
        fetched, remembered = [], {}
        files = [open(os.path.join(folder, '%d.warc.gz' % n), 'wb') for n in range(FILES)]
        for number, url in enumerate(sorted(asked)):
            if urlsplit(url).hostname not in hosts:
                continue
            file = files[number % FILES]
            if url not in pages:
                file.write(record('response', url, date, b'HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>not here</p>'))
                continue
            body = html(*pages[url])
            digest = 'sha1:' + base64.b32encode(hashlib.sha1(body).digest()).decode()
            fetched.append(url)
            head = b'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n'
            before = self.last.get(url)
            if before and before[0] == digest:
                profile = 'WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest'
                refers = ('WARC-Refers-To-Target-URI: ' + url, 'WARC-Refers-To-Date: ' + before[1])
                file.write(record('revisit', url, date, head, (profile, 'WARC-Payload-Digest: ' + digest, *refers)))
                remembered[url] = before
            else:
                file.write(record('response', url, date, head + body, ('WARC-Payload-Digest: ' + digest,)))
                remembered[url] = (digest, date)
        for file in files:
            file.close()
        return fetched, remembered

    def counts(self, remembered):
        """Makes this crawl the base of the next one."""
        self.last = remembered
        self.known.update(remembered)

    def patch(self, exports):
        """Applies the patches of a comparison. Returns lines that were to be removed but were not
        on the list, and the numbers of added and removed lines."""
        unknown, counts = [], [0, 0]
        for name, mine in ('prefixes.txt', self.prefixes), ('urls.txt', self.urls):
            add, remove = (read_lines(os.path.join(exports, what + name)) for what in ('add-', 'remove-'))
            unknown += [line for line in remove if line not in mine]
            mine.difference_update(remove)
            mine.update(add)
            counts = [counts[0] + len(add), counts[1] + len(remove)]
        return unknown, counts

    def take(self, exports):
        """Replaces the whole list."""
        self.prefixes = set(read_lines(os.path.join(exports, 'prefixes.txt')))
        self.urls = set(read_lines(os.path.join(exports, 'urls.txt')))


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().splitlines()
