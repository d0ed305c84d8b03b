"""A synthetic crawl that depends on this file only, so that all builds are measured on the same
bytes.

The crawl has sites of a hundred pages. Each site has a mirror on another host, which differs in one
page of ten. A second crawl follows the first.
"""
import os, random, shutil, zlib

PAGES, SITE_PAGES, FILES = 20_000, 100, 40
MENU = ''.join('<li class="entry level-%d"><a href="%d.html" title="Chapter %d">Chapter %d</a></li>\n' % (at % 3, at, at, at)
               for at in range(30))


def html(words, site, page, changed):
    """Returns a page with texts that depend on numbers, which its mirror shares."""
    draw = random.Random(site * 1_000_003 + page)
    paragraphs = [' '.join(draw.choices(words, k=40)) for _ in range(8)]
    if changed:
        paragraphs[page % 8] = ' '.join(random.Random(repr((site, page, changed))).choices(words, k=40))
    body = '\n'.join('<div class="section"><h2 id="s%d">Part %d</h2>\n<p>%s &amp; so on.</p></div>' % (at, at, text)
                     for at, text in enumerate(paragraphs))
    links = ' '.join('<a href="%d.html">see there</a>' % draw.randrange(SITE_PAGES) for _ in range(5))
    return ('<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>Page %d of %d</title>\n<script>var page = {"at": %d};</script>'
            '</head>\n<body>\n<ul id="menu">\n%s</ul>\n%s\n<p>%s</p>\n</body></html>\n' % (page, site, page, MENU, body, links)).encode()


def record(url, number, year, body):
    http = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n' % len(body) + body
    head = ('WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:%08x-0000-0000-0000-%012x>\r\nWARC-Date: %d-01-01T00:00:00Z\r\n'
            'WARC-Target-URI: %s\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n'
            % (year, number, year, url, len(http)))
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(head.encode() + http + b'\r\n\r\n') + packer.flush()


def made(work):
    """Returns the folder of the crawl: `first`, or for `changed` the one with a changed file.
    Creates it once."""
    folder = os.path.join(work, 'crawl-1')
    if os.path.exists(folder):
        return folder
    half = folder + '.half'
    shutil.rmtree(half, ignore_errors=True)
    draw = random.Random(3)
    words = [''.join(draw.choices('etaoinshrdlu', k=draw.randint(2, 9))) for _ in range(20_000)]
    for name, year, numbers in [('first', 2025, range(FILES)), ('changed', 2026, [FILES // 2])]:
        os.makedirs(os.path.join(half, name))
        for file in numbers:
            with open(os.path.join(half, name, '%03d.warc.gz' % file), 'wb') as out:
                for number in range(PAGES * file // FILES, PAGES * (file + 1) // FILES):
                    site, page = divmod(number, SITE_PAGES)
                    is_mirror = site % 2
                    host = 'mirror%d.example/pub/%d' % (site // 2 % 37, site // 2) if is_mirror else 'www.site%d.example' % (site // 2)
                    changed = (year if year > 2025 else 0) or int(is_mirror and page % 10 == 3)
                    out.write(record('http://%s/%d.html' % (host, page), number, year, html(words, site // 2, page, changed)))
    os.rename(half, folder)
    return folder
