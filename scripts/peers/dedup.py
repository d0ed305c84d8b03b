#!/usr/bin/env python3
"""Near-duplicates of a corpus of texts: webtwin dedup beside rensa and datasketch, on the same file, against the truth.

    pip install rensa datasketch          (either may be missing)
    dedup.py WEBTWIN FOLDER [TEXTS]       (100,000 texts, about 148 MB; FOLDER keeps the corpus for the next time)

Makes a corpus (see `make`), runs each program on it at thresholds 0.7 and 0.8, and prints one JSON object a line: wall
and CPU seconds and peak memory of the process; recall of planted pairs by their true resemblance (found: not both are
kept); precision: the share of removed texts that truly resemble the text kept in their place by the threshold or more.
Every program compares sets of five words, which white space separates. Kept lines are compared with the input, byte by
byte.
"""

import json
import os
import random
import subprocess
import sys
import time

WORDS = 200
BANDS = [(0.9, 1.01), (0.8, 0.9), (0.7, 0.8)]


def shingles(text):
    words = text.split()
    return {tuple(words[at:at + 5]) for at in range(max(1, len(words) - 4))}


def resemblance(x, y):
    x, y = shingles(x), shingles(y)
    return len(x & y) / len(x | y)


def make(folder, texts):
    """Four texts in five are bases, each fifth is a copy of one: exact, with a span of 5 % or 10 % replaced, or with each
    word replaced with probability 1 % or 3 %. A tenth of the bases share two thirds of their words with nine others, so
    that there are pairs that are alike but not similar."""
    rnd = random.Random(42)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    common = range(len(letters) + 1, 1, -1)
    vocabulary = ["".join(rnd.choices(letters, common, k=rnd.randint(3, 10))) for _ in range(50_000)]
    cumulated, total = [], 0.0
    for rank in range(len(vocabulary)):
        total += 1 / (rank + 20)
        cumulated.append(total)

    def draw(count):
        return rnd.choices(vocabulary, cum_weights=cumulated, k=count)

    bases, template = [], []
    for number in range(texts * 4 // 5):
        if number % 100 == 0:
            template = draw(WORDS * 2 // 3)
        own = rnd.randint(WORDS // 2, WORDS * 3 // 2)
        bases.append(template + draw(WORDS // 3) if number % 100 < 10 else draw(own))
    docs = [(" ".join(words), None) for words in bases]
    for number in range(texts - len(bases)):
        base = rnd.randrange(len(bases))
        words, kind = list(bases[base]), number % 5
        if kind in (1, 2):
            count = max(1, len(words) * (5 if kind == 1 else 10) // 100)
            start = rnd.randrange(len(words) - count)
            words[start:start + count] = draw(count)
        elif kind in (3, 4):
            share = 0.01 if kind == 3 else 0.03
            words = [draw(1)[0] if rnd.random() < share else word for word in words]
        docs.append((" ".join(words), base))
    order = list(range(len(docs)))
    rnd.shuffle(order)
    place = {number: at for at, number in enumerate(order)}
    with open(f"{folder}/docs.jsonl", "w") as out:
        for at, number in enumerate(order):
            out.write(json.dumps({"id": at, "text": docs[number][0], "source": f"made/{number}"}) + "\n")
    with open(f"{folder}/truth.tsv", "w") as out:
        for number, (text, base) in enumerate(docs):
            if base is not None:
                out.write(f"{place[number]}\t{place[base]}\t{resemblance(text, docs[base][0]):.6f}\n")


def read(folder):
    with open(f"{folder}/docs.jsonl") as lines:
        return [json.loads(line)["text"] for line in lines]


def judge(folder, threshold, kept):
    """Recall by band, and precision; stdin has the kept id of each removed one, and `kept` is the file that was written.

    In a process of its own, for what this one holds would count as memory of the next program that it starts."""
    removed = {int(a): b for a, b in json.load(sys.stdin).items()}
    texts, recall, found = read(folder), {}, {}
    if kept:
        with open(f"{folder}/docs.jsonl", "rb") as lines, open(kept, "rb") as written:
            stay = [line for at, line in enumerate(lines) if at not in removed]
            found["kept_byte_for_byte"] = stay == written.readlines()
    with open(f"{folder}/truth.tsv") as truth:
        pairs = [line.split() for line in truth]
    for low, high in BANDS:
        of_band = [(int(a), int(b)) for a, b, j in pairs if max(low, threshold) <= float(j) < high]
        if of_band:
            recall[str(low)] = round(sum(a in removed or b in removed for a, b in of_band) / len(of_band), 5)
    true = sum(resemblance(texts[a], texts[b]) >= threshold for a, b in removed.items())
    print(json.dumps({**found, "recall": recall, "removed": len(removed), "precision": round(true / max(1, len(removed)), 5)}))


def run(command):
    """Runs a program; returns what it printed, and what it took."""
    began = time.time()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    cpu = used.ru_utime + used.ru_stime
    wall = time.time() - began
    return printed, {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "peak_mb": round(used.ru_maxrss / 1024, 1)}


def webtwin(program, folder, threshold):
    out = f"{folder}/out-{threshold}-{os.getpid()}"
    _, took = run([program, "dedup", f"{folder}/docs.jsonl", "--output", out, "--id-field", "id",
                   "--shingle", "tokens:5", "--threshold", str(threshold)])
    table, _ = run([program, "show", f"{out}/removed", "--json", "--limit", "1000000000"])
    rows = [json.loads(line) for line in table.splitlines()]
    return {int(row["id"]): int(row["kept_id"]) for row in rows}, took, f"{out}/docs.jsonl"


def peer(name, folder, threshold):
    printed, took = run([sys.executable, __file__, "--peer", name, folder, str(threshold)])
    return {int(a): b for a, b in json.loads(printed).items()}, took, None


def as_peer(name, folder, threshold):
    """Signs each text, looks it up, and removes it if a kept text is estimated similar."""
    removed, signatures = {}, {}
    if name == "rensa":
        from rensa import RMinHash, RMinHashLSH
        index = RMinHashLSH(threshold, 128, 16)
    else:
        from datasketch import MinHash, MinHashLSH
        index = MinHashLSH(threshold, 128)
    for at, text in enumerate(read(folder)):
        words = text.split()
        runs = [" ".join(words[start:start + 5]) for start in range(max(1, len(words) - 4))]
        if name == "rensa":
            signature = RMinHash(128, 42)
            signature.update(runs)
        else:
            signature = MinHash(128)
            signature.update_batch([one.encode() for one in runs])
        similar = [kept for kept in index.query(signature) if signature.jaccard(signatures[kept]) >= threshold]
        if similar:
            removed[at] = min(similar)
        else:
            signatures[at] = signature
            index.insert(at, signature)
    print(json.dumps(removed))


def main():
    if sys.argv[1] == "--peer":
        return as_peer(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    if sys.argv[1] == "--make":
        return make(sys.argv[2], int(sys.argv[3]))
    if sys.argv[1] == "--judge":
        return judge(sys.argv[2], float(sys.argv[3]), sys.argv[4])
    program, folder = sys.argv[1], sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(f"{folder}/truth.tsv"):
        texts = sys.argv[3] if len(sys.argv) > 3 else "100000"
        subprocess.run([sys.executable, __file__, "--make", folder, texts], check=True)
    test = [sys.executable, "-c"]
    peers = [name for name in ("rensa", "datasketch")
             if subprocess.run(test + [f"import {name}"], capture_output=True).returncode == 0]
    for threshold in (0.7, 0.8):
        for name in ["webtwin"] + peers:
            find = webtwin if name == "webtwin" else peer
            removed, took, kept = find(program if name == "webtwin" else name, folder, threshold)
            command = [sys.executable, __file__, "--judge", folder, str(threshold), kept or ""]
            told = subprocess.run(command, input=json.dumps(removed), capture_output=True, text=True, check=True)
            print(json.dumps({"program": name, "threshold": threshold, **took, **json.loads(told.stdout)}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
