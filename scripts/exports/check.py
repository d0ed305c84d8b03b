#!/usr/bin/env python3
"""Checks every export of a run against its table `avoid`, with the tools that read the exports, if
they are installed.

    check.py RUN [--heritrix CLASSPATH]

All crawled URLs are tested with each export: those of the avoid list must be denied, and all others
must pass. Long lists of regular expressions are tested with every n-th URL only, because they are
tried one by one. Needs pyarrow. Uses Scrapy (the middleware and LinkExtractor), node (the regular
expressions of Browsertrix are JavaScript's), java (those of Nutch are Java's, and the first match
decides) and Heritrix' webarchive-commons with its dependencies on a class path, if they are
available.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

import pyarrow.dataset as dataset

NUTCH = """
import java.nio.file.*; import java.util.*; import java.util.regex.*;
class Nutch { public static void main(String[] a) throws Exception {
  List<Pattern> patterns = new ArrayList<>(); List<Boolean> signs = new ArrayList<>();
  for (String line : Files.readAllLines(Path.of(a[0]))) {
    if (line.isEmpty() || line.startsWith("#")) continue;
    signs.add(line.charAt(0) == '+'); patterns.add(Pattern.compile(line.substring(1))); }
  for (String url : Files.readAllLines(Path.of(a[1]))) {
    boolean accepted = false;
    for (int i = 0; i < patterns.size(); i++) if (patterns.get(i).matcher(url).find()) { accepted = signs.get(i); break; }
    if (!accepted) System.out.println(url); } } }
"""

NODE = """
const fs = require("fs");
const rules = JSON.parse(fs.readFileSync(process.argv[1])).map(rule => new RegExp(rule));
for (const url of fs.readFileSync(process.argv[2], "utf8").split("\\n"))
  if (url && rules.some(rule => rule.test(url))) console.log(url);
"""


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("run")
    arguments.add_argument("--heritrix", help="class path with webarchive-commons and what it needs")
    asked = arguments.parse_args()
    exports = os.path.join(asked.run, "exports")

    def column(table, name):
        return dataset.dataset(f"{asked.run}/{table}", format="parquet").to_table()[name].to_pylist()

    urls, avoid = sorted(column("pages", "url")), set(column("avoid", "url"))
    failed = False

    def told(tool, denied, asked=urls):
        nonlocal failed
        denied, to_skip = set(denied), avoid.intersection(asked)
        missed, hit = len(to_skip - denied), len(denied - to_skip)
        print(f"{tool}: denies {len(denied & to_skip)} of {len(to_skip)} to skip, and {hit} of {len(asked) - len(to_skip)} others")
        failed |= bool(missed or hit)

    def lines(name):
        with open(os.path.join(exports, name), encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]

    # Some ten million tries of a regular expression.
    some = urls[:: 1 + len(urls) * len(lines("scrapy-deny.txt")) // 10_000_000]
    prefixes, whole = tuple(lines("prefixes.txt")), set(lines("urls.txt"))
    told("prefixes.txt and urls.txt", [url for url in urls if url in whole or (prefixes and url.startswith(prefixes))])

    if importlib.util.find_spec("scrapy"):
        sys.path.insert(0, exports)
        from scrapy_webtwin import CopiesToSkip
        from scrapy.http import HtmlResponse
        from scrapy.linkextractors import LinkExtractor

        copies = CopiesToSkip(exports)
        told("scrapy_webtwin.py", [url for url in urls if url in copies])
        extractor = LinkExtractor(deny=lines("scrapy-deny.txt"), deny_extensions=[])
        body = "".join("<a href='%s'>x</a>" % url.replace("&", "&amp;").replace("'", "&#39;") for url in some)
        page = HtmlResponse("http://none.example/", body=body.encode(), encoding="utf-8")
        passed = {link.url for link in extractor.extract_links(page)}
        told("scrapy-deny.txt", [url for url in some if url not in passed], some)
    else:
        print("skipped: Scrapy is not installed")

    with tempfile.TemporaryDirectory() as folder:
        path, path_of_some = os.path.join(folder, "urls.txt"), os.path.join(folder, "some.txt")
        for name, written in [(path, urls), (path_of_some, some)]:
            with open(name, "w", encoding="utf-8") as file:
                file.writelines(url + "\n" for url in written)

        def run(command):
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.split("\n")[:-1]

        if shutil.which("node"):
            import json

            rules = [line[5:-1].replace("''", "'") for line in lines("browsertrix.yaml") if line.startswith("  - '")]
            with open(os.path.join(folder, "rules.json"), "w", encoding="utf-8") as file:
                json.dump(rules, file)
            told("browsertrix.yaml", run(["node", "-e", NODE, os.path.join(folder, "rules.json"), path_of_some]), some)
        else:
            print("skipped: node is not installed")
        if shutil.which("javac"):
            with open(os.path.join(folder, "Nutch.java"), "w", encoding="utf-8") as file:
                file.write(NUTCH)
            run(["javac", "-d", folder, os.path.join(folder, "Nutch.java")])
            rules = os.path.join(exports, "regex-urlfilter.txt")
            told("regex-urlfilter.txt", run(["java", "-cp", folder, "Nutch", rules, path_of_some]), some)
        else:
            print("skipped: javac is not installed")
        if asked.heritrix and shutil.which("javac"):
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "HeritrixSurts.java")
            run(["javac", "-cp", asked.heritrix, "-d", folder, source])
            files = [os.path.join(exports, name) for name in ["heritrix-surts.txt", "heritrix-beans.xml"]]
            told("heritrix-surts.txt, heritrix-beans.xml",
                 run(["java", "-cp", asked.heritrix + os.pathsep + folder, "HeritrixSurts", *files, path]))
        else:
            print("skipped: Heritrix is not on a class path")
    sys.exit(1 if failed else 0)


main()
