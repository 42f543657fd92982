#!/usr/bin/env bash
# The demo: a head and a second node on this machine train a tiny model (SFT warm start, then GRPO). There are two policy
# workers, one on each node. Everything is stopped at the end, on Ctrl-C too.
#   examples/demo.sh [FOLDER WITH THE PROGRAMS]     default build/release/bin; `make demo` builds and calls this
# What it writes lies in build/demo (or $STARLING_DEMO_DIR).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "${1:-$root/build/release/bin}" && pwd)
out=${STARLING_DEMO_DIR:-$root/build/demo}
rm -rf "$out"; mkdir -p "$out"

address=
finish() {
  local code=$?
  trap - EXIT INT TERM
  [ -z "$address" ] || "$bin/starling" stop --address "$address" || true
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cores=$(nproc); share=$(( cores > 1 ? cores / 2 : 1 ))
echo "== starting a head and a second node, $share core(s) each"
address=$("$bin/starling" start --head --port 0 --num-cpus "$share" | tail -n 1)
"$bin/starling" start --address "$address" --num-cpus "$share" >/dev/null
"$bin/starling" status --address "$address"

echo "== training a tiny model made on the spot: SFT warm start, then GRPO"
"$bin/starling" train --address "$address" --config "$root/examples/toy/grpo.yaml" \
  trainer.nnodes=2 trainer.n_gpus_per_node=1 trainer.default_local_dir="$out/checkpoints"
echo "== done: checkpoint and logs are under $out"
