#!/bin/sh
# The rollout engine and transformers' generate() one after the other, in fp32, and their ratios.
#   bench/peers/rollout/run.sh MODEL [PYTHON]    MODEL: a Hugging Face folder or a .gguf file; PYTHON: a Python with transformers, torch, gguf, accelerate (default python3)
set -eu
model=${1:?name a model: a Hugging Face folder or a .gguf file} python=${2:-python3}
root=$(cd "$(dirname "$0")/../../.." && pwd)
bin=${STARLING_BIN:-$root/build/release/bin}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
set -- --model "$model" --batch 1,16,64 --prompt-len 48 --new-tokens 32 --threads 2
"$bin/bench_rollout" "$@" --json > "$folder/ours.json"
"$python" "$root/bench/peers/rollout/transformers_generate.py" "$@" > "$folder/transformers.json"
"$python" - "$folder/ours.json" "$folder/transformers.json" <<'PYTHON'
import json, sys
ours, peer = (json.load(open(path)) for path in sys.argv[1:])
print(f"{'':24} {'Starling':>10} {'transformers':>13} {'ratio':>7}   load average before: {ours['load_average_before']}, {peer.get('load_average_before')}")
for name in peer:
    if name.endswith("_tok_per_s") and name in ours:
        print(f"{name:24} {ours[name]:10.1f} {peer[name]:13.1f} {ours[name] / peer[name]:7.2f}")
PYTHON
[ -z "${RECORD:-}" ] || cat "$folder/ours.json" "$folder/transformers.json"
