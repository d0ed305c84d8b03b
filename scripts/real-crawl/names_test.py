"""python3 -m unittest names_test.py"""
import os, tempfile, unittest

from fetch import response
from names import Page, all_twins, mended, named, of_manual, same_pages, twins, without_frame


def version(**pages):
    """Returns pages by path from path=title; every title has its own bytes. `__` is a slash, and
    the ending is left out."""
    return {path.replace('__', '/') + '.html': Page('%s of %s' % (path, title), title, '')
            for path, title in pages.items()}


class Rules(unittest.TestCase):
    def test_a_frame_is_no_part_of_a_title(self):
        pages = version(**{'p%d' % n: 'Page %d — Manual 1.%d' % (n, 2) for n in range(9)})
        self.assertEqual({page.title for page in without_frame(pages).values()}, {'Page %d' % n for n in range(9)})

    def test_equal_paths_are_one_page_even_if_titles_change(self):
        same, left = same_pages(version(a='Old words', b='B'), version(a='New words', b='B'))
        self.assertEqual((same['a.html'], same['b.html'], left), (('a.html', 'path'), ('b.html', 'path'), set()))

    def test_a_title_that_moved_takes_its_page_along(self):
        old = version(release='Release notes', news='News')
        same, _ = same_pages(old, version(release='Overview', notes='Release notes', news='News'))
        self.assertEqual(same['release.html'], ('notes.html', 'title'))

    def test_names_that_are_numbered_anew_say_nothing(self):
        old = version(**{'a%02d' % n: 'Class %d' % n for n in range(20)}, a90='', index='Index')
        new = version(**{'a%02d' % (n + 1): 'Class %d' % n for n in range(20)}, a90='', index='Index')
        new['a90.html'] = Page('other bytes', '', '')
        same, left = same_pages(old, new)
        self.assertEqual(same['a07.html'], ('a08.html', 'title'))
        self.assertEqual(same['index.html'], ('index.html', 'path'))
        self.assertNotIn('a90.html', same)
        self.assertIn('a90.html', left)

    def test_one_new_title_in_a_stable_series_leaves_the_others_alone(self):
        old = version(**{'a%02d' % n: 'Class %d' % n for n in range(20)}, a90='')
        new = version(**{'a%02d' % n: 'Class %d' % n for n in range(20)}, a90='')
        new['a03.html'], new['a33.html'] = Page('x', 'Another', ''), old['a03.html']
        same, left = same_pages(old, new)
        self.assertEqual((same['a03.html'], same['a90.html']), (('a33.html', 'title'), ('a90.html', 'path')))
        self.assertEqual(left, {'a03.html'})

    def test_a_folder_that_moved_takes_pages_along_whose_titles_do_not_tell(self):
        names = ['p%d' % n for n in range(5)]
        old = version(**{'%s__html__%s' % (x, p): p for x in ('en', 'ja') for p in names}, en__html__last='Old words')
        new = version(**{'%s__%s' % (x, p): p for x in ('en', 'ja') for p in names}, en__last='New words')
        same, _ = same_pages(old, new)
        self.assertEqual(same['ja/html/p3.html'], ('ja/p3.html', 'folder'))
        self.assertEqual(same['en/html/last.html'], ('en/last.html', 'folder'))

    def test_names_hold_through_versions_and_no_version_has_one_twice(self):
        versions = [version(c='Guide', b='Notes'), version(b='Guide', c='Other'), version(a='Guide', b='Odd')]
        names, _ = named(versions)
        self.assertEqual([names[n][p][0] for n, p in enumerate(['c.html', 'b.html', 'a.html'])], ['c.html'] * 3)
        for of_version in names:
            self.assertEqual(len({name for name, _ in of_version.values()}), len(of_version))

    def test_folders_of_one_version_are_twins_unless_in_two_languages(self):
        names = {'%s__p%d' % (x, n): 'Page %d' % n for x in ('doc', 'copy') for n in range(4)}
        pages = version(**names, doc__more='More')
        self.assertEqual({b for a, b in twins(pages, pages) if a == 'copy/p1.html'}, {'doc/p1.html'})
        for path in pages:
            pages[path] = pages[path]._replace(language='en' if path < 'd' else 'fr')
        self.assertEqual(list(twins(pages, pages)), [])

    def test_manuals_of_one_package_may_be_one_and_others_are_not(self):
        manuals = {'m%d' % m: {'1': version(**{'f%d__p%d' % (m, n): 'Page %d' % n for n in range(4)})} for m in (1, 2)}
        names = {target: of_manual(versions) for target, versions in manuals.items()}
        words = all_twins(manuals, names, {'m1': 'package', 'm2': 'package'})
        self.assertEqual(words['m1', 'f1/p2.html'], words['m2', 'f2/p2.html'])
        self.assertNotEqual(words['m1', 'f1/p2.html'], words['m1', 'f1/p3.html'])
        self.assertEqual(all_twins(manuals, names, {'m1': 'one', 'm2': 'other'}), {})

    def test_packages_of_one_version_are_two_versions_and_a_mirror_has_the_names_and_the_origin_of_its_source(self):
        rows, stream = [], b''
        made = ('a', 'x', ['Boot', 'Disk']), ('b', 'y', ['Disk', 'Net']), ('c', 'x', ['Boot', 'Disk'])
        for host, package, pages in made:
            for number, title in enumerate(pages):
                url = 'http://%s.example/ch%d.html' % (host, number)
                stream += response(url, b'<title>%s</title> on %s' % (title.encode(), host.encode()))
                rows.append(dict(url=url, target='t', version='1', page='ch%d.html' % number, linked=1,
                                 variant='dressed' if host == 'c' else 'real', source='deb:-:' + package))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'crawl-00000.warc.gz'), 'wb') as file:
                file.write(stream)
            rows, counts = mended(folder, rows)
        a, b, c = rows[:2], rows[2:4], rows[4:]
        self.assertEqual(b[0]['page'], a[1]['page'])
        self.assertEqual(len({row['page'] for row in a + b}), 3)
        self.assertEqual([(row['page'], row['origin']) for row in c], [(row['page'], row['origin']) for row in a])
        self.assertEqual(sum(n for (_, rule), n in counts.items() if rule in ('path', 'title', 'renumbered')), 4)


if __name__ == '__main__':
    unittest.main()
