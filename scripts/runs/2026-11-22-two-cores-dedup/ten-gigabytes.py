"""Writes made-up texts as JSONL to stdout: ten-gigabytes.py SEED BYTES | zstd -1. Of twenty, one is a copy, one has a word changed."""

import sys

import numpy


def main():
    seed, bytes_to_write = int(sys.argv[1]), int(float(sys.argv[2]))
    rng, letters = numpy.random.default_rng(seed), numpy.random.default_rng(1)
    words = ["".join(letters.choice(list("abcdefghijklmnopqrstuvwxyz"), n)) for n in letters.integers(3, 10, 50000)]
    vocabulary = numpy.array(words, dtype=object)
    written, number, originals = 0, 0, []
    while written < bytes_to_write:
        for row in vocabulary[rng.integers(0, 50000, (200, 250))]:
            if number % 20 == 7:
                text = originals[number % len(originals)]
            elif number % 20 == 13:
                changed = originals[number % len(originals)].split(" ")
                changed[number % len(changed)] = "changed"
                text = " ".join(changed)
            else:
                text = " ".join(row)
                if number % 20 == 0 and len(originals) < 5000:
                    originals.append(text)
            line = '{"id":"%d-%d","text":"%s"}\n' % (seed, number, text)
            sys.stdout.write(line)
            written += len(line)
            number += 1


main()
