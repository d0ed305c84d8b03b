#!/usr/bin/env python3
"""Compares near-duplicate detection in a corpus of texts by webtwin dedup and other programs, on
the same file, with the truth.

    pip install rensa datasketch gaoya text-dedup 'datatrove[processing]' spacy orjson      (each may be missing)
    dedup.py WEBTWIN FOLDER [TEXTS] [--only PROGRAM,...] [--duplodocus BINARY]
    (100,000 texts, about 148 MB; FOLDER keeps the corpus for the next time)

Generates a corpus (see `make`), runs each program on it at thresholds 0.7 and 0.8, and prints one
JSON object per line: wall-clock and CPU seconds and peak memory of the process; recall of planted
pairs by their true resemblance (a pair is found unless both texts are kept); precision, which is
the fraction of removed texts that truly resemble, by the threshold or more, the text kept in their
place, or any kept text if the program does not report it. Every program compares sets of five words
with at most 128 permutations, in the same bands of rows: 32 x 4 at 0.7, 21 x 6 at 0.8 (rensa always
uses 16 bands; duplodocus and datatrove have no threshold besides bands and rows). datasketch, gaoya
and rensa sign and look up one text after another in one process and keep those without an earlier
similar text, as in their documentation; their times include reading the file but not writing. The
other programs read and write corpora.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time

WORDS = 200
PERMUTATIONS = 128
CUT = {0.7: (32, 4), 0.8: (21, 6)}
BANDS = [(0.9, 1.01), (0.8, 0.9), (0.7, 0.8)]


def shingles(text):
    words = text.split()
    return {tuple(words[at:at + 5]) for at in range(max(1, len(words) - 4))}


def resemblance(x, y):
    x, y = shingles(x), shingles(y)
    return len(x & y) / len(x | y)


def make(folder, texts):
    """Four of five texts are bases, and each fifth text is a copy of one: exact, with a span of 5 %
    or 10 % replaced, or with each word replaced with probability 1 % or 3 %. A tenth of the bases
    share two thirds of their words with nine others, so that some pairs are alike but not
    similar."""
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
    """Computes recall by band, and precision. stdin has the kept id of each removed text or null,
    and `kept` is the written file.

    This runs in a process of its own, because its memory would count as memory of the next program
    that this process starts."""
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
    true = sum(resemblance(texts[a], texts[b]) >= threshold for a, b in removed.items() if b is not None)
    true += with_a_kept_one(texts, {a for a, b in removed.items() if b is None}, removed, threshold)
    print(json.dumps({**found, "recall": recall, "removed": len(removed), "precision": round(true / max(1, len(removed)), 5)}))


def with_a_kept_one(texts, wanted, removed, threshold):
    """Returns the number of the given texts that truly resemble a kept text. Compares all texts
    with a common shingle."""
    having = {}
    for at in wanted:
        for one in shingles(texts[at]):
            having.setdefault(hash(one), []).append(at)
    left = set(wanted)
    for at, text in enumerate(texts):
        if at not in removed and left:
            shared = {}
            for one in shingles(text):
                for other in having.get(hash(one), ()):
                    shared[other] = shared.get(other, 0) + 1
            for other, count in shared.items():
                if other in left and count > 2 and resemblance(texts[other], text) >= threshold:
                    left.discard(other)
    return len(wanted) - len(left)


def run(command):
    """Runs a program. Returns its output, its seconds and its memory."""
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


def corpus_peer(name, folder, threshold, duplodocus=None):
    """Runs a program that writes a corpus. Texts missing in its output were removed."""
    out = f"{folder}/{name}-{threshold}-{os.getpid()}"
    bands, rows = CUT[threshold]
    os.makedirs(f"{out}/in")
    os.symlink(os.path.abspath(f"{folder}/docs.jsonl"), f"{out}/in/docs.jsonl")
    if name == "duplodocus":
        # It splits words by Unicode rules, without punctuation, which the corpus does not have.
        command = [duplodocus, "minhash-memory", "--input-dir", f"{out}/in", "--storage-dir", f"{out}/work",
                   "--output-dir", f"{out}/out", "--text-key", "text", "--num-buckets", str(bands), "--bucket-size",
                   str(rows), "--ngram-size", "5", "--tokenizer", "uniseg", "--remove-duplicates", "true"]
    elif name == "text-dedup":
        command = [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", f"{out}/in/docs.jsonl",
                   "--split", "train", "--cache_dir", f"{out}/cache", "--output", f"{out}/out", "--column", "text",
                   "--ngram", "5", "--num_perm", str(bands * rows), "--b", str(bands), "--r", str(rows),
                   "--hash_func", "xxh3", "--num_proc", str(os.cpu_count()), "--min_length", "1"]
    else:
        command = [sys.executable, __file__, "--datatrove", out, str(bands), str(rows)]
    _, took = run(command)
    told = subprocess.run([sys.executable, __file__, "--kept-ids", f"{out}/out"], capture_output=True, text=True, check=True)
    kept = set(json.loads(told.stdout))
    with open(f"{folder}/docs.jsonl") as lines:
        count = sum(1 for _ in lines)
    shutil.rmtree(out)
    return {at: None for at in range(count) if at not in kept}, took, None


def kept_ids(out):
    """Returns the ids in a folder of JSONL, compressed or not, or of a Hugging Face dataset."""
    ids = []
    if os.path.exists(f"{out}/dataset_info.json") or os.path.exists(f"{out}/state.json"):
        import datasets
        return print(json.dumps([int(one) for one in datasets.load_from_disk(out)["id"]]))
    for at, _, names in os.walk(out):
        for name in names:
            path = f"{at}/{name}"
            if ".jsonl" not in name:
                continue
            command = {".gz": ["gzip", "-dc", path], ".zst": ["zstd", "-dc", path]}.get(os.path.splitext(name)[1], ["cat", path])
            lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
            ids += [int(json.loads(line)["id"]) for line in lines]
    print(json.dumps(ids))


def as_datatrove(out, bands, rows):
    """Runs its four steps as in its example, with one task per core."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter
    config = MinhashConfig(n_grams=5, num_buckets=bands, hashes_per_bucket=rows)
    cores = os.cpu_count()
    reader = JsonlReader(f"{out}/in", glob_pattern="*.jsonl")
    steps = [
        ([reader, MinhashDedupSignature(output_folder=f"{out}/signatures", config=config, language="en")], 1),
        ([MinhashDedupBuckets(input_folder=f"{out}/signatures", output_folder=f"{out}/buckets", config=config)], bands),
        ([MinhashDedupCluster(input_folder=f"{out}/buckets", output_folder=f"{out}/remove", config=config)], 1),
        ([reader, MinhashDedupFilter(input_folder=f"{out}/remove"), JsonlWriter(f"{out}/out", compression=None)], 1),
    ]
    for number, (pipeline, tasks) in enumerate(steps):
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=min(tasks, cores), logging_dir=f"{out}/log{number}").run()


def as_gaoya(folder, threshold):
    from gaoya.minhash import MinHashStringIndex
    bands, rows = CUT[threshold]
    index = MinHashStringIndex(hash_size=32, jaccard_threshold=threshold, num_bands=bands, band_size=rows,
                               num_hashes=bands * rows, analyzer="word", lowercase=False, ngram_range=(5, 5))
    texts = read(folder)
    removed = {}
    for at, text in enumerate(texts):
        similar = index.query(text)
        if similar:
            removed[at] = min(similar)
        else:
            index.insert_document(at, text)
    print(json.dumps(removed))


def as_peer(name, folder, threshold):
    """Signs each text, looks it up, and removes it if a kept text is estimated to be similar."""
    if name == "gaoya":
        return as_gaoya(folder, threshold)
    removed, signatures = {}, {}
    bands, rows = CUT[threshold]
    if name == "rensa":
        from rensa import RMinHash, RMinHashLSH
        index = RMinHashLSH(threshold, PERMUTATIONS, 16)
    else:
        from datasketch import MinHash, MinHashLSH
        index = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    for at, text in enumerate(read(folder)):
        words = text.split()
        runs = [" ".join(words[start:start + 5]) for start in range(max(1, len(words) - 4))]
        if name == "rensa":
            signature = RMinHash(PERMUTATIONS, 42)
            signature.update(runs)
        else:
            signature = MinHash(bands * rows)
            signature.update_batch([one.encode() for one in runs])
        similar = [kept for kept in index.query(signature) if signature.jaccard(signatures[kept]) >= threshold]
        if similar:
            removed[at] = min(similar)
        else:
            signatures[at] = signature
            index.insert(at, signature)
    print(json.dumps(removed))


def main():
    options = {}
    for option in ("--only", "--duplodocus"):
        if option in sys.argv:
            at = sys.argv.index(option)
            options[option] = sys.argv[at + 1]
            del sys.argv[at:at + 2]
    if sys.argv[1] == "--peer":
        return as_peer(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    if sys.argv[1] == "--datatrove":
        return as_datatrove(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    if sys.argv[1] == "--kept-ids":
        return kept_ids(sys.argv[2])
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
    modules = {"rensa": "rensa", "datasketch": "datasketch", "gaoya": "gaoya", "text-dedup": "text_dedup.minhash",
               "datatrove": "datatrove.pipeline.dedup, spacy, orjson"}
    there = [name for name, module in modules.items()
             if subprocess.run(test + [f"import {module}"], capture_output=True).returncode == 0]
    programs = ["webtwin"] + there + ["duplodocus"] * ("--duplodocus" in options)
    if "--only" in options:
        programs = [name for name in programs if name in options["--only"].split(",")]
    for threshold in (0.7, 0.8):
        for name in programs:
            if name == "webtwin":
                removed, took, kept = webtwin(program, folder, threshold)
            elif name in ("rensa", "datasketch", "gaoya"):
                removed, took, kept = peer(name, folder, threshold)
            else:
                removed, took, kept = corpus_peer(name, folder, threshold, options.get("--duplodocus"))
            command = [sys.executable, __file__, "--judge", folder, str(threshold), kept or ""]
            told = subprocess.run(command, input=json.dumps(removed), capture_output=True, text=True, check=True)
            print(json.dumps({"program": name, "threshold": threshold, **took, **json.loads(told.stdout)}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
