"""Builds sites with real web software and serves them on loopback: a blog by Pelican, and a
repository shown by Klaus.

Their texts are the documentation of Python's standard library, which every machine with Python has.
"""
import importlib, inspect, os, pkgutil, subprocess, sys, textwrap

CATEGORIES = ['text', 'data', 'network', 'system']
AUTHORS = ['ada', 'grace', 'alan']
# Modules with side effects when they are imported.
LOUD = {'antigravity', 'this', 'idlelib', 'lib2to3', 'test', 'turtledemo', 'turtle', 'tkinter'}


def documented():
    """Returns names and documentation of functions and classes of the standard library in order, if
    the documentation is long enough. Leaves out texts that share a third of their lines with an
    earlier one, since URL rules cannot detect that similarity."""
    found, known = [], set()
    for module in sorted(set(sys.stdlib_module_names) - LOUD):
        if module.startswith('_'):
            continue
        try:
            members = inspect.getmembers(importlib.import_module(module))
        except Exception:       # Modules of other systems.
            continue
        for name, member in members:
            if name.startswith('_') or getattr(member, '__module__', None) != module:
                continue
            methods = getattr(member, '__dict__', {}).items()
            own = [inspect.getdoc(member)] + [method.__doc__ for key, method in methods if not key.startswith('_') and callable(method)]
            text = '\n\n'.join(inspect.cleandoc(one) for one in own if one)
            lines = {line.strip() for line in text.split('\n') if len(line.strip()) > 20}
            if 600 < len(text) < 6000 and 3 * len(lines & known) < len(lines):
                known |= lines
                found.append(('%s.%s' % (module, name), text))
    return found


def blog(work, python, posts):
    """Builds the blog in three forms: as published, for printing, and as a preview for its authors.
    Returns the folder of each host."""
    content = os.path.join(work, 'content')
    os.makedirs(content, exist_ok=True)
    for number, (name, text) in enumerate(posts):
        slug = name.replace('.', '-').replace('_', '-').lower()
        tags = ', '.join(sorted({name.split('.')[0], text.split()[0].strip('.,:()').lower()}))
        lines = ['Title: ' + name, 'Date: 2026-%02d-%02d' % (1 + number % 12, 1 + number % 28),
                 'Category: ' + CATEGORIES[number % len(CATEGORIES)], 'Authors: ' + AUTHORS[number % len(AUTHORS)],
                 'Tags: ' + tags, 'Slug: ' + slug, '', *['> ' + line for line in text.split('\n')], '',
                 '[To be printed](/print/%s.html) [Send to a friend](/%s.html?utm_source=mail&utm_medium=friend)' % (slug, slug)]
        with open(os.path.join(content, slug + '.md'), 'w') as file:
            file.write('\n'.join(lines) + '\n')
    built = {'blog.example': '', 'blog.example/print': 'print', 'staging.blog.example': 'staging'}
    for host, kind in built.items():
        output = os.path.join(work, 'blog' if kind != 'staging' else 'staging', 'print' if kind == 'print' else '')
        settings = os.path.join(work, 'settings-%s.py' % (kind or 'blog'))
        with open(settings, 'w') as file:
            file.write(textwrap.dedent('''\
                SITENAME = %r
                SITEURL = ''
                RELATIVE_URLS = True
                THEME = %r
                TIMEZONE = 'UTC'
                DEFAULT_PAGINATION = 10
                FEED_ALL_ATOM = CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
                ''' % (('STAGING - ' if kind == 'staging' else '') + 'A blog of Python', 'simple' if kind == 'print' else 'notmyidea')))
        subprocess.run([python, '-m', 'pelican', content, '-o', output, '-s', settings, '-q'], check=True)
    folders = {'blog.example': 'blog', 'www.blog.example': 'blog', 'staging.blog.example': 'staging'}
    return {host: os.path.join(work, folder) for host, folder in folders.items()}


def repository(work, posts):
    """Creates a repository with a history of twelve commits. Returns its folder."""
    folder = os.path.join(work, 'demo')
    if os.path.exists(folder):
        return folder
    os.makedirs(os.path.join(folder, 'doc'))
    git = lambda *words: subprocess.run(['git', '-C', folder, *words], check=True, capture_output=True)
    git('init', '-q', '-b', 'master')
    for number in range(12):
        for name, text in posts[number::12][:6]:
            with open(os.path.join(folder, 'doc', name + '.txt'), 'w') as file:
                file.write(text + '\n')
        git('add', '.')
        git('-c', 'user.name=Ada', '-c', 'user.email=ada@a.example', 'commit', '-q', '-m', 'Part %d: %s' % (number, posts[number][0]),
            '--date', '2026-01-%02dT00:00:00Z' % (number + 1))
    return folder


STATIC = '''
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
handler.log_message = lambda *_: None
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
'''

GIT = '''
import sys, klaus, waitress
server = waitress.create_server(klaus.make_app([sys.argv[1]], "Repositories"), host="127.0.0.1", port=0, threads=8)
print(server.effective_port, flush=True)
server.run()
'''


class Server:
    """A program that serves a folder on loopback until it is stopped."""

    def __init__(self, python, program, folder):
        self.process = subprocess.Popen([python, '-c', program, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline())

    def end(self):
        self.process.terminate()
        self.process.wait()


def serve(work, python):
    """Builds all sites. Returns the servers, and the server of each host."""
    posts = documented()
    folders = blog(work, python, posts[:160])
    by_folder = {folder: Server(python, STATIC, folder) for folder in sorted(set(folders.values()))}
    hosts = {host: by_folder[folder] for host, folder in folders.items()}
    git = Server(python, GIT, repository(work, posts[160:232]))
    hosts.update({'git.example': git, 'www.git.example': git})
    return [*by_folder.values(), git], hosts
