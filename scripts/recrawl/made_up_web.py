"""A synthetic web that changes from week to week: families of an original and its mirrors, a shop,
and unrelated sites.

Everything is drawn from one seed. A page is a list of lines and a list of links.
"""
import random

WORDS = '''river stone engine paper window garden signal bridge market winter copper lantern harbour mountain letter clock forest
needle silver carpet valley thunder orchard pencil hammer island saddle mirror pepper cotton anchor basket candle ladder meadow
helmet barrel ribbon timber shadow button cradle feather kettle marble napkin oyster pillow quarry rocket sandal tunnel velvet'''.split()

FATES = ('follows', 'lags', 'freezes', 'drifts', 'dies', 'moves', 'comes_back', 'is_rewritten')


def lines(*of):
    """Returns twenty lines that are unique to `name`."""
    draw = random.Random(repr(of))
    return [' '.join(draw.choices(WORDS, k=9)) + ' %d.' % draw.randrange(10 ** 6) for _ in range(20)]


class Original:
    """A manual, some of whose pages change each week, in a few lines or completely."""

    def __init__(self, name, pages, rate, seed):
        self.name, self.pages, self.rate, self.seed = name, pages, rate, seed
        self.texts = [[lines(seed, name, page) for page in range(pages)]]

    def week(self, week):
        while len(self.texts) <= week:
            draw = random.Random(repr((self.seed, self.name, 'week', len(self.texts))))
            texts = [list(text) for text in self.texts[-1]]
            for page in range(self.pages):
                if draw.random() < self.rate:
                    new = lines(self.seed, self.name, page, len(self.texts))
                    at = draw.randrange(18)
                    texts[page][at:at + 3 if draw.random() < 0.8 else 20] = new[at:at + 3]
            self.texts.append(texts)
        return self.texts[max(week, 0)]


class Mirror:
    """A copy of an original, whose fate begins in a week of its own."""

    def __init__(self, of, number, fate, begins):
        self.of, self.number, self.fate, self.begins = of, number, fate, begins

    def root(self, week):
        if self.fate == 'moves' and week >= self.begins:
            return 'http://new-home-%d.%s.example/docs/' % (self.number, self.of.name)
        return 'http://mirror-%d.%s.example/pub/manual/' % (self.number, self.of.name)

    def week(self, week):
        """Returns its texts, or none while it is absent."""
        later = week - self.begins
        if later < 0 and self.fate != 'lags':
            return self.of.week(week)
        if self.fate == 'lags':
            return self.of.week(week - 1 - self.number % 3)
        if self.fate == 'freezes':
            return self.of.week(self.begins)
        if self.fate == 'dies' or self.fate == 'comes_back' and later < 4:
            return None
        if self.fate == 'is_rewritten':
            return [lines(self.of.seed, self.of.name, page, 'rewritten', self.number) for page in range(self.of.pages)]
        if self.fate == 'drifts':
            own = lambda page: lines(self.of.seed, self.of.name, page, 'own', self.number)
            texts = self.of.week(self.begins)
            return [own(page) if page % 5 <= later else texts[page] for page in range(self.of.pages)]
        return self.of.week(week)


class Web:
    """Returns thirteen families, twelve unrelated sites, and a shop whose pages have session ids;
    about 1,500 pages."""

    def __init__(self, seed, weeks):
        draw = random.Random(seed)
        self.seed, self.families = seed, []
        for family in range(13):
            original = Original('family-%02d' % family, draw.randrange(14, 40), draw.choice((0.0, 0.02, 0.1, 0.3)), seed)
            begins = lambda: draw.randrange(2, max(3, weeks - 5))
            mirrors = [Mirror(original, n, draw.choice(FATES), begins()) for n in range(draw.randrange(1, 5))]
            self.families.append((original, mirrors))
        self.alone = [('http://alone-%d.example/' % n, draw.randrange(8, 24)) for n in range(12)]
        self.items = [(item, ['%08x' % draw.getrandbits(32) for _ in range(draw.randrange(1, 6))]) for item in range(40)]

    def week(self, week):
        """Returns all existing pages: lines and links by URL."""
        pages, roots = {}, []

        def collection(root, texts):
            roots.append(root)
            url = lambda page: root if page == 0 else '%spage-%02d.html' % (root, page)
            for page, text in enumerate(texts):
                to = range(len(texts)) if page == 0 else (0, (page + 1) % len(texts))
                pages[url(page)] = (text, [url(other) for other in to])

        for original, mirrors in self.families:
            collection('http://www.%s.example/manual/' % original.name, original.week(week))
            for mirror in mirrors:
                texts = mirror.week(week)
                if texts is not None:
                    collection(mirror.root(week), texts)
        for root, size in self.alone:
            changed = lambda page: week // 4 if page % 4 == 0 else 0
            collection(root, [lines(self.seed, root, page, changed(page)) for page in range(size)])
        shop = 'http://shop.example/'
        items = ['%sitem?id=%d&sid=%s' % (shop, item, sid) for item, sids in self.items for sid in sids]
        for item, sids in self.items:
            for sid in sids:
                pages['%sitem?id=%d&sid=%s' % (shop, item, sid)] = (lines(self.seed, 'item', item, week // 6 * (item % 2)), [shop])
        pages[shop] = (lines(self.seed, 'shop'), items)
        pages['http://home.example/'] = (lines(self.seed, 'home'), roots + [shop])
        return pages
