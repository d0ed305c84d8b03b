"""Prints random URLs of the synthetic pages of `webtwin-lab reproduce bench-lookup`, half of them
crawled: urls.py PAGES COUNT"""

import sys

MASK = (1 << 64) - 1


def splitmix64(key):
    z = (key + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def main():
    pages, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        n = splitmix64(number ^ 1 << 50) % (2 * pages)
        site = splitmix64(n // 200) % (pages // 200 + 1)
        print(f"http://www.site{site}.example/some/folder/of-{n % 7}/page-{n}.html")


main()
