#!/usr/bin/env python3
"""Cuts a crawl of gzip WARC files into segments, and creates the next crawl.

    segments.py CRAWL/*.warc.gz --out DIR --segments 100 [--pages 100000]
    DIR/first/NNN.warc.gz    the records, distributed in turn
    DIR/one/NNN.warc.gz      the same (linked), except for one segment, each of whose pages is changed
    DIR/revisits/NNN.warc.gz a whole later crawl: one page in five is changed, and the others are revisit
                             records as Heritrix and Browsertrix write them
    DIR/again/NNN.warc.gz    the same crawl without revisits, with all payloads
"""
import argparse, base64, hashlib, os, re, zlib

PIECE = 1 << 16


def records(path):
    """Yields the content of each gzip member, one per record."""
    with open(path, 'rb') as file:
        rest = file.read(PIECE)
        while rest:
            member, content = zlib.decompressobj(31), []
            while not member.eof and rest:
                content.append(member.decompress(rest))
                rest = member.unused_data if member.eof else file.read(PIECE)
            rest = rest or file.read(PIECE)
            yield b''.join(content)


def gzip(content):
    member = zlib.compressobj(6, zlib.DEFLATED, 31)
    return member.compress(content) + member.flush()


def record(head, block):
    head = re.sub(rb'Content-Length: \d+', b'Content-Length: %d' % len(block), head)
    return gzip(head + b'\r\n\r\n' + block + b'\r\n\r\n')


def later(head, kind=b'response'):
    """Returns the header of a record of the next year, with another id."""
    year = lambda found: b'WARC-Date: %d' % (int(found[1]) + 20)
    head = re.sub(rb'WARC-Date: (\d{4})', year, head)
    head = re.sub(rb'WARC-Type: \w+', b'WARC-Type: ' + kind, head)
    return re.sub(rb'urn:uuid:........', b'urn:uuid:ffffffff', head)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('crawl', nargs='+')
    options.add_argument('--out', required=True)
    options.add_argument('--segments', type=int, default=100)
    options.add_argument('--pages', type=int, default=1 << 60)
    options = options.parse_args()
    files = {}
    for name in 'first', 'one', 'revisits', 'again':
        os.makedirs(os.path.join(options.out, name))
        files[name] = [open(os.path.join(options.out, name, '%03d.warc.gz' % n), 'wb') for n in range(options.segments)]
    pages = 0
    for path in sorted(options.crawl):
        for content in records(path):
            head, _, block = content.partition(b'\r\n\r\n')
            if b'WARC-Type: response' not in head or pages >= options.pages:
                continue
            n, pages = pages % options.segments, pages + 1
            block = block[:-4]
            http, _, body = block.partition(b'\r\n\r\n')
            changed = b'<p>This page of %d bytes says what it did not say before.</p>' % len(body) + body
            digest, other = (b'WARC-Payload-Digest: sha1:' + base64.b32encode(hashlib.sha1(of).digest()) for of in (body, changed))
            changed = re.sub(rb'Content-Length: \d+', b'Content-Length: %d' % len(changed), http) + b'\r\n\r\n' + changed
            files['first'][n].write(record(head + b'\r\n' + digest, block))
            files['one'][n].write(record(later(head) + b'\r\n' + other, changed) if n == options.segments // 2 else record(head + b'\r\n' + digest, block))
            if pages % 5 == 0:
                files['revisits'][n].write(record(later(head) + b'\r\n' + other, changed))
                files['again'][n].write(record(later(head) + b'\r\n' + other, changed))
            else:
                url, date = (re.search(rb'%s: (\S+)' % name, head)[1] for name in (b'WARC-Target-URI', b'WARC-Date'))
                refers = b'\r\n'.join([digest, b'WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest',
                                       b'WARC-Refers-To-Target-URI: ' + url, b'WARC-Refers-To-Date: ' + date])
                files['revisits'][n].write(record(later(head, b'revisit') + b'\r\n' + refers, http + b'\r\n\r\n'))
                files['again'][n].write(record(later(head) + b'\r\n' + digest, block))
    for written in files.values():
        for file in written:
            file.close()
    # Equal segments are hard links to one file, so their lengths and times are equal, too.
    for n in range(options.segments):
        first, one = (os.path.join(options.out, name, '%03d.warc.gz' % n) for name in ('first', 'one'))
        if open(first, 'rb').read() == open(one, 'rb').read():
            os.remove(one)
            os.link(first, one)
    print(pages, 'pages')


if __name__ == '__main__':
    main()
