#!/bin/sh
# Starling's and TRL's training steps one after the other, and their ratios.
#   bench/peers/trl/run.sh HF_FOLDER [PYTHON] [STEPS]    PYTHON: a Python with trl, torch, transformers, datasets, accelerate (default python3)
set -eu
model=${1:?name a Hugging Face folder of SmolLM2-135M-Instruct} python=${2:-python3} steps=${3:-6}
root=$(cd "$(dirname "$0")/../../.." && pwd)
bin=${STARLING_BIN:-$root/build/release/bin}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$bin/bench_trainer" --folder "$folder" --model "$model" --steps "$steps" --json > "$folder/ours.json"
"$python" "$root/bench/peers/trl/trl_trainer.py" --folder "$folder" --model "$model" --steps "$steps" > "$folder/trl.json"
"$python" - "$folder/ours.json" "$folder/trl.json" <<'PYTHON'
import json, sys
ours, trl = (json.load(open(path)) for path in sys.argv[1:])
print(f"{'':24} {'Starling':>10} {'TRL':>10} {'ratio':>7}   load average before: {ours['load_average_before']}, {trl['load_average_before']}")
for name in trl:
    if name.split("_")[0] in ("grpo", "sft", "toy") and name in ours:
        more = name.endswith("_per_s")
        print(f"{name:24} {ours[name]:10.2f} {trl[name]:10.2f} {(ours[name] / trl[name]) if more else (trl[name] / ours[name]):7.2f}")
PYTHON
[ -z "${RECORD:-}" ] || cat "$folder/ours.json" "$folder/trl.json"
