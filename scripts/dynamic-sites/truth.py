"""The truth about each page of the sites, derived from its URL only."""
import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

LIST = re.compile(r'/(index\d*\.html)?$|/(tag|category|author)/|/(tags|categories|authors|archives)\.html$')


class Page:
    """Returns `same`, which is equal for all URLs of a page, and `near`, which is equal for all
    pages with nearly the same content."""

    def __init__(self, url):
        parts = urlsplit(url)
        host = re.sub(r'^www\.', '', parts.netloc)
        query = urlencode(sorted((name, value) for name, value in parse_qsl(parts.query) if not name.startswith('utm_')))
        path = re.sub(r'/index\.html$', '/', unquote(parts.path))
        self.same = '%s%s?%s' % (host, path, query)
        if host.endswith('blog.example'):
            self.app, self.is_list = 'blog', bool(LIST.search(path))
            self.near = re.sub(r'^/print/', '/', path) + '?' + query
        else:
            self.app = 'git'
            kind = re.match(r'/demo/(\w+)/', path)
            # Trees and histories of a revision share files. A file is the same at HEAD and at its
            # branch, and with or without blame.
            self.is_list = not kind or kind[1] not in ('blob', 'blame', 'commit')
            self.near = re.sub(r'/(HEAD|master)/', '/HEAD/', re.sub(r'/HEAD$|/master$', '/HEAD/', path)) + '?' + query
            file = re.match(r'/demo/(?:blob|blame|raw)/[^/]+/(.*)', path)
            self.file = file[1] if file else None


def is_wrong(one, other):
    """True if two joined pages certainly differ: two different lists, or two revisions of a
    file."""
    if one.app != other.app:
        return True
    if one.near == other.near or one.is_list and other.is_list:
        return False
    return not (one.app == 'git' and one.file and one.file == other.file)
