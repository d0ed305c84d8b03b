#!/usr/bin/env python3
"""Checks every export of URL rules against `webtwin lookup`, which applies the rules themselves.

    check_rules.py WEBTWIN RUN INDEX [--urls FILE]

URLs that were not crawled pass through each export: those of FILE, or those of the crawl with one
additional parameter. The result must equal the answer of `lookup --json`. Python's regular
expressions and the class `UrlRules` of `scrapy_webtwin.py` (if Scrapy is installed) read
`url-substitutions.tsv`. Java's regular expressions, if `java` is installed, replace the tools that
are written in Java: the files for Nutch, StormCrawler and Norconex are applied as these tools do,
by `replaceAll`, and the file for Heritrix as its `RegexRule` does, by `matches` and
`appendReplacement`. Needs pyarrow unless FILE is given. Rules of the kinds `order` and `case` have
no expression, so URLs that one of them changes are left out.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

JAVA = r"""
import java.nio.file.*; import java.util.*; import java.util.regex.*;
class Rules { public static void main(String[] a) throws Exception {
  List<String[]> rules = new ArrayList<>();
  for (String line : Files.readAllLines(Path.of(a[1]))) rules.add(line.split("\t", -1));
  List<Pattern> patterns = new ArrayList<>();
  for (String[] rule : rules) patterns.add(Pattern.compile(rule[0]));
  StringBuilder out = new StringBuilder();
  for (String url : Files.readAllLines(Path.of(a[2]))) {
    for (int i = 0; i < rules.size(); i++) {
      Matcher m = patterns.get(i).matcher(url);
      String to = rules.get(i)[1];
      if (a[0].equals("replaceAll")) { url = m.replaceAll(to); continue; }
      if (!m.matches()) continue;
      StringBuffer b = new StringBuffer();
      m.appendReplacement(b, to);
      url = b.toString();
    }
    out.append(url).append('\n');
  }
  System.out.print(out); } }
"""


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("webtwin")
    arguments.add_argument("run")
    arguments.add_argument("index")
    arguments.add_argument("--urls")
    asked = arguments.parse_args()
    exports = os.path.join(asked.run, "exports")

    def path(name):
        return os.path.join(exports, name)

    def text(name):
        with open(path(name), encoding="utf-8") as file:
            return file.read()

    if asked.urls:
        urls = [line.strip() for line in open(asked.urls, encoding="utf-8") if line.strip()]
    else:
        import pyarrow.dataset as dataset

        crawled = dataset.dataset(f"{asked.run}/pages", format="parquet").to_table()["url"].to_pylist()
        urls = sorted(url + ("&" if "?" in url else "?") + "webtwin-check=1" for url in crawled)
    answers = subprocess.run(
        [asked.webtwin, "lookup", asked.index, "--json"], input="\n".join(urls) + "\n", text=True, capture_output=True, check=True
    )
    answers = [json.loads(line) for line in answers.stdout.splitlines()]
    rows = [line.split("\t") for line in text("url-rules.tsv").splitlines()[1:]]
    beyond = [row for row in rows if row[3] in ("order", "case")]
    wanted = {}
    for answer in answers:
        if not answer["known"] and answer["canonical"]:
            wanted[answer["canonical"]] = answer["rewritten"] or answer["canonical"]
    if beyond:
        domains = tuple(row[0] for row in beyond)
        wanted = {url: to for url, to in wanted.items() if not url.split("/")[2].split(":")[0].endswith(domains)}
    urls = list(wanted)
    changed = sum(wanted[url] != url for url in urls)
    print(f"{len(rows)} rules, {len(beyond)} of them beyond expressions; {changed} of {len(urls)} URLs are rewritten")
    failed = not urls

    def told(tool, found):
        nonlocal failed
        wrong = [(url, to, wanted[url]) for url, to in zip(urls, found) if to != wanted[url]]
        print(f"{tool}: {len(urls) - len(wrong)} of {len(urls)} as lookup")
        for url, to, want in wrong[:3]:
            print(f"  {url}\n    becomes {to}\n    not     {want}")
        failed = failed or bool(wrong) or len(found) != len(urls)

    substitutions = [line.split("\t")[1:] for line in text("url-substitutions.tsv").splitlines()[1:]]

    def python(url):
        for pattern, to in substitutions:
            url = re.sub(pattern, lambda m: re.sub(r"\\(.)|\$([0-9])", lambda t: t[1] or m[int(t[2])], to), url)
        return url

    told("Python, url-substitutions.tsv", [python(url) for url in urls])
    if importlib.util.find_spec("scrapy"):
        sys.path.insert(0, exports)
        import scrapy_webtwin

        rules = scrapy_webtwin.UrlRules(exports)
        told("Scrapy, scrapy_webtwin.UrlRules", [rules.rewrite(url) for url in urls])
    if not shutil.which("java"):
        print("java is not there: the files for Nutch, Heritrix, StormCrawler and Norconex are not checked")
        return int(failed)

    def of(root, element, *names):
        return [[one.findtext(name) or "" for name in names] for one in root.iter(element)]

    beans = "{http://www.springframework.org/schema/beans}"
    heritrix = [
        [bean.find(f"{beans}property[@name='{name}']").get("value") for name in ("regex", "format")]
        for bean in xml.fromstring(text("heritrix-canonicalization.xml")).iter(f"{beans}bean")
        if bean.get("class") == "org.archive.modules.canonicalize.RegexRule"
    ]
    filters = json.loads(text("stormcrawler-urlfilters.json"))["org.apache.stormcrawler.filtering.URLFilters"]
    normalizers = filters[0]["params"]["urlNormalizers"]
    nutch = of(xml.fromstring(text("regex-normalize.xml")), "regex", "pattern", "substitution")
    norconex = of(xml.fromstring(text("norconex-url-normalizer.xml")), "replace", "match", "replacement")
    with tempfile.TemporaryDirectory() as folder:

        def put(name, lines):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            return file.name

        program, list_of_urls = put("Rules.java", [JAVA]), put("urls", urls)
        for tool, how, rules in (
            ("Nutch, regex-normalize.xml", "replaceAll", nutch),
            ("StormCrawler, stormcrawler-urlfilters.json", "replaceAll", [[n["pattern"], n["substitution"]] for n in normalizers]),
            ("Norconex, norconex-url-normalizer.xml", "replaceAll", norconex),
            ("Heritrix, heritrix-canonicalization.xml", "matches", heritrix),
        ):
            command = ["java", program, how, put("rules", ["\t".join(rule) for rule in rules]), list_of_urls]
            done = subprocess.run(command, text=True, capture_output=True, check=True)
            told(f"{tool} (by java.util.regex)", done.stdout.splitlines())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
