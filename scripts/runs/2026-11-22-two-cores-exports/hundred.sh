#!/usr/bin/env bash
# A hundred made-up crawls of 637 to 4,300 pages: pages, pages to skip, visited for the way, cut off by the run's own count.
# WEBTWIN is the program; scripts/exports/ways.py, which needs pyarrow, counts again and ends this with 1 if it finds one.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for seed in $(seq 1 100); do
    rm -rf "$dir/out"
    "${WEBTWIN:-webtwin}" run --input "synth://?pages=$((600 + 37 * seed))&seed=$seed" --output "$dir/out" 2> /dev/null
    python3 "$here/exports/ways.py" "$dir/out" > "$dir/ways.txt" || { cat "$dir/ways.txt"; exit 1; }
    python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
print(s["pages"]["pages"], s["skip"]["pages"], s["ways"]["visited_for_the_way"], s["ways"]["cut_off"])' "$dir/out/summary.json"
done | awk '{ pages += $1; skip += $2; way += $3; cut += $4 } END { print NR " crawls:", pages, skip, way, cut }'
