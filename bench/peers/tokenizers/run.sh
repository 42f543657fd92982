#!/usr/bin/env bash
# The same 10 MB of text through Starling's tokenizers and through the tokenizers wheel, one after the other on this machine, side by side:
#   bench/peers/tokenizers/run.sh [BUILD_FOLDER] [PYTHON]     (default build/release; a Python that has tokenizers 0.23.3, else a virtual environment with it is made under
#   ~/.cache/starling/peers)
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${1:-build/release} python=${2:-} version=0.23.3
[ -x "$build/bin/bench_tokenizer" ] || { echo "error: $build/bin/bench_tokenizer is not built: run make" >&2; exit 1; }
if [ -z "$python" ]; then
  cache=${STARLING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/starling}/peers/tokenizers-$version
  python=$cache/venv/bin/python
  if [ ! -e "$cache/ready" ]; then
    python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install -q "tokenizers==$version"
    touch "$cache/ready"
  fi
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$build/bin/bench_tokenizer" --write-text "$folder/text.jsonl"
models=(tests/fixtures/tokenizers/*)
for threads in 1 2; do
  "$build/bin/bench_tokenizer" --json --threads $threads >>"$folder/starling.jsonl"
  TOKENIZERS_PARALLELISM=true RAYON_NUM_THREADS=$threads "$python" bench/peers/tokenizers/bench_tokenizers.py "$folder/text.jsonl" "${models[@]}" >>"$folder/wheel.jsonl"
done
"$python" - "$folder/starling.jsonl" "$folder/wheel.jsonl" <<'PYTHON'
import json, sys
ours, wheel = ({(row["model"], row["threads"]): row for row in map(json.loads, open(path))} for path in sys.argv[1:])
print(f"{'tokenizer':22} {'threads':>7} {'MB/s encoded':>14} {'wheel':>8} {'ratio':>7} {'M tokens/s decoded':>20} {'wheel':>8} {'same tokens':>12}")
for key, row in sorted(ours.items()):
    peer = wheel[key]
    print(f"{key[0]:22} {key[1]:7} {row['encode_mb_per_s']:14.1f} {peer['encode_mb_per_s']:8.1f} {row['encode_mb_per_s'] / peer['encode_mb_per_s']:6.1f}x "
          f"{row['decode_tokens_per_s'] / 1e6:20.1f} {peer['decode_tokens_per_s'] / 1e6:8.1f} {'yes' if row['tokens'] == peer['tokens'] else 'NO':>12}")
PYTHON
[ -z "${RECORD:-}" ] || cat "$folder/starling.jsonl" "$folder/wheel.jsonl"
