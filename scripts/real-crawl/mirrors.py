"""The pages of a site (page -> bytes), the links between them, and what mirrors make of both."""
import collections, hashlib, html, posixpath, re, urllib.parse

LINK = re.compile(rb'''(<(?:a|area|frame|iframe|link)\b[^>]*?\b(?:href|src)\s*=\s*)'''
                  rb'''(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))''', re.I)
ENDINGS = {'.html': '.htm', '.htm': '.html', '.xhtml': '.xht'}


def draw(*parts):
    """The 64-bit number that stands for these parts. Every choice is one of these, so no order of work decides any."""
    return int.from_bytes(hashlib.sha256('\0'.join(map(str, parts)).encode()).digest()[:8], 'big')


def resolve(page, reference):
    """The path inside the collection that a relative reference means; None for any other reference."""
    path = re.split('[#?]', reference)[0]
    if not path or path[0] == '/' or re.match(r'[a-z][\w+.-]*:', path, re.I):
        return None
    path = urllib.parse.unquote(path) + ('index.html' if path[-1] == '/' else '')
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def reference_of(link):
    return html.unescape((link[2] or link[3] or link[4] or b'').decode('utf-8', 'replace')).strip()


def relink(page, data, address):
    """The page with every relative link to q made to read address(q); None leaves a link as it is."""
    def new(link):
        reference = reference_of(link)
        to = address(resolve(page, reference))
        tail = reference[len(re.split('[#?]', reference)[0]):]
        return link[0] if to is None else link[1] + b'"' + html.escape(quote(to) + tail).encode() + b'"'
    return LINK.sub(new, data)


def quote(path):
    return urllib.parse.quote(path, safe="/:@!$&'()*+,;=~-._")


def entry_order(page):
    """Sorts the page a visitor starts from first: the topmost index, or the topmost page where there is none."""
    return not re.search(r'(^|/)(index|contents|toc)\.', page), page.count('/'), page


def dressed(pages, seed, host, target, home):
    """What a mirror's operator adds: a bar with an image and links, one of them home, to the source; a footer with a
    counter and a date."""
    bar = ('<div class="mirror"><a href="/"><img src="/logo.gif" alt="%s"></a> You are reading the %s mirror of '
           '<a href="%s">%s</a>. <a href="/search.html">Search</a> | <a href="/mirrors.html">Other mirrors</a></div>\n'
           % (host, host, quote(home + min(pages, key=entry_order)), target)).encode()
    day, out = draw(seed, host), {}
    for page, data in pages.items():
        foot = ('\n<hr><address>Mirrored by webmaster@%s; last update %d-%02d-%02d. Hits: %d</address>\n'
                % (host, 1999 + day % 26, 1 + day % 12, 1 + day % 28, draw(seed, host, page) % 90000)).encode()
        body = re.search(rb'<body[^>]*>', data, re.I)
        start, end = body.end() if body else 0, data.lower().rfind(b'</body')
        end = end if end >= start else len(data)
        out[page] = data[:start] + bar + data[start:end] + foot + data[end:]
    return out


def renamed(pages, way):
    """Other page names, with the links inside following: .htm for .html and so on, and all in lower case if way is even
    and leaves the names distinct. Returns the pages and, for each new name, the old one."""
    names = {p: re.sub(r'\.\w+$', lambda m: ENDINGS.get(m[0], m[0]), p) for p in pages}
    lower = {p: q.lower() for p, q in names.items()}
    if way % 2 == 0 and len(set(lower.values())) == len(pages):
        names = lower

    def address(page):
        folder = posixpath.dirname(names[page]) or '.'
        return lambda q: posixpath.relpath(names[q], folder) if q in names else None
    return {names[p]: relink(p, data, address(p)) for p, data in pages.items()}, {q: p for p, q in names.items()}


def partial(pages, share, home):
    """A share of the pages, grown along links from the entry; links to what is left out lead home, to the source."""
    out = {p: [q for q in (resolve(p, reference_of(x)) for x in LINK.finditer(d)) if q in pages]
           for p, d in pages.items()}
    kept, want = set(), max(5, int(share * len(pages)))
    # One start is enough but where the entry's menu is made by script, and links nowhere.
    for start in [min(pages, key=entry_order)] + sorted(pages, key=lambda p: (-len(out[p]), p)):
        todo = collections.deque([start])
        while todo and len(kept) < want:
            page = todo.popleft()
            if page not in kept:
                kept.add(page)
                todo.extend(out[page])
    return {p: relink(p, pages[p], lambda q: home + q if q in pages and q not in kept else None) for p in kept}
