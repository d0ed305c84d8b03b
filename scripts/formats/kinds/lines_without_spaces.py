"""Near-copies of texts in scripts without spaces. The default job must find as many of them as of
English ones."""

import random

from made import Case, http, record

PAIRS = 40
PARAGRAPHS = 3
COLUMNS = 600
# The first character, the number of characters from there on, their width, and punctuation.
SCRIPTS = {"Chinese": (0x4E00, 4000, 2, "，。"), "Chinese without punctuation": (0x4E00, 4000, 2, ""),
           "Japanese": (0x3042, 80, 2, "、。"), "Thai": (0x0E01, 46, 1, ""), "Khmer": (0x1780, 35, 1, ""),
           "Burmese": (0x1000, 33, 1, "။"), "Lao": (0x0E81, 30, 1, ""), "Tibetan": (0x0F40, 30, 1, "་"),
           "Yi": (0xA000, 1000, 2, "")}
EDITS = {"a word changed": (1, 1), "two words put in": (0, 2), "two words taken out": (2, 0)}


def english(draw, columns):
    """Returns words of five columns on average, including the space."""
    syllable = lambda: draw.choice("bdfgklmnprstvz") + draw.choice("aeiou")
    return ["".join(syllable() for _ in range(draw.choice([1, 2, 2, 3]))) for _ in range(columns // 5)]


def characters(draw, script, columns):
    first, many, width, marks = SCRIPTS[script]
    one = lambda at: draw.choice(marks) if marks and at % 17 == 16 else chr(first + draw.randrange(many))
    return [one(at) for at in range(columns // width)]


def page(paragraphs, between):
    body = "".join(f"<p>{between.join(units)}</p>" for units in paragraphs)
    return http(f"<!doctype html><meta charset=utf-8>{body}".encode())


def pairs(draw, name, make, a_word, between, kind):
    """Returns records of pages and their near-copies, each on a host of its own."""
    out, put_in = EDITS[kind]
    for number in range(PAIRS):
        before = [make(COLUMNS) for _ in range(PARAGRAPHS)]
        after = []
        for units in before:
            at = draw.randrange(len(units) - 2 * a_word)
            after.append(units[:at] + make(COLUMNS)[:put_in * a_word] + units[at + out * a_word:])
        for copy, paragraphs in [("a", before), ("b", after)]:
            yield record(f"http://{copy}.{name}-{number}.example/", page(paragraphs, between))


def cases():
    def found(outcome, name):
        urls = {row["doc_id"]: row["url"] for row in outcome.table("pages")}
        return sum(f".{name}-" in urls[row["a"]] for row in outcome.table("pairs"))

    # A difference of one in twenty may be chance.
    measure = {"as in English": lambda outcome: found(outcome, "script") >= found(outcome, "english") - PAIRS // 20}
    for script in SCRIPTS:
        for kind in EDITS:
            draw = random.Random(f"{script} {kind}")
            words = pairs(draw, "english", lambda columns: english(draw, columns), 1, " ", kind)
            # A word has two characters, or four narrow ones.
            make, a_word = lambda columns: characters(draw, script, columns), 4 // SCRIPTS[script][2]
            others = pairs(draw, "script", make, a_word, "", kind)
            yield Case(f"{script}, {kind} in each paragraph", {"a.warc": b"".join([*words, *others])},
                       {"kept": 4 * PAIRS, "as in English": True}, measure=measure)
