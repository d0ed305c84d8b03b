"""Crawls local test hosts, each of which is a server on loopback, in breadth-first order. Writes a
line of JSON per page."""
import collections, http.client, json
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        target = dict(attributes).get('href')
        if tag == 'a' and target:
            self.found.append(target)


def crawl(hosts, path, most):
    """Fetches at most the given number of pages of each host. Returns the number fetched."""
    frontier = collections.deque('http://%s/' % host for host in hosts)
    seen, fetched = set(frontier), collections.Counter()
    with open(path, 'w') as out:
        while frontier:
            url = frontier.popleft()
            parts = urlsplit(url)
            if fetched[parts.netloc] >= most:
                continue
            target = (parts.path or '/') + ('?' + parts.query if parts.query else '')
            connection = http.client.HTTPConnection('127.0.0.1', hosts[parts.netloc].port, timeout=30)
            try:
                connection.request('GET', target, headers={'Host': parts.netloc})
                answer = connection.getresponse()
                body = answer.read()
                place = answer.getheader('Location')
            finally:
                connection.close()
            is_page = answer.status == 200 and 'html' in (answer.getheader('Content-Type') or '')
            html = body.decode('utf-8', 'replace') if is_page else ''
            links = Links()
            links.feed(html)
            if is_page:
                fetched[parts.netloc] += 1
                out.write(json.dumps({'url': url, 'html': html}) + '\n')
            for link in links.found + [place] * bool(place):
                to = urljoin(url, link).split('#')[0]
                other = urlsplit(to)
                to = other._replace(netloc=other.netloc.split(':')[0]).geturl()
                if urlsplit(to).netloc in hosts and to not in seen:
                    seen.add(to)
                    frontier.append(to)
    return sum(fetched.values())
