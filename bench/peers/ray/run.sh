#!/usr/bin/env bash
# The same workload on Starling and on Ray's C++ API, one after the other on this machine, side by side:
#   bench/peers/ray/run.sh [BUILD_FOLDER] [SECONDS]     (default build/release, 1 second a figure).
# Ray comes from PyPI into a virtual environment under ~/.cache/starling/peers, when this is first run, and nowhere else.
# Ray's driver starts a cluster by `ray start` and ends it by `ray stop`, which ends any other Ray of this user here too.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${1:-build/release} seconds=${2:-1} version=2.60.0
cache=${STARLING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/starling}/peers/ray-$version
[ -x "$build/bin/bench_runtime" ] || { echo "error: $build/bin/bench_runtime is not built: run make" >&2; exit 1; }
if [ ! -e "$cache/ready" ]; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install -q "ray[cpp]==$version"
  touch "$cache/ready"
fi
ray=$("$cache/venv/bin/python" -c 'import os, ray; print(os.path.join(os.path.dirname(ray.__file__), "cpp"))')
folder=$(mktemp -d)
finish() { "$cache/venv/bin/ray" stop --force >/dev/null 2>&1 || true; rm -rf "$folder"; }
trap finish EXIT
mkdir "$folder/library"
compile=(g++ -std=c++17 -O2 -w -D_GLIBCXX_USE_CXX11_ABI=0 -I"$ray/include" -I. bench/peers/ray/bench_ray.cpp -L"$ray/lib" -Wl,-rpath,"$ray/lib" -lray_api -pthread)
"${compile[@]}" -fPIC -shared -o "$folder/library/bench_ray.so"
"${compile[@]}" -o "$folder/bench_ray"
"$build/bin/bench_runtime" --json --seconds "$seconds" >"$folder/starling.json"
PATH="$cache/venv/bin:$PATH" timeout 600 "$folder/bench_ray" "$folder/library" "$seconds" 2>"$folder/ray.log" | grep '^{' >"$folder/ray.json" ||
  { tail -20 "$folder/ray.log" >&2; echo "error: Ray's run failed" >&2; exit 1; }
"$cache/venv/bin/python" - "$folder/starling.json" "$folder/ray.json" <<'PYTHON'
import json, sys
starling, ray = (json.load(open(path)) for path in sys.argv[1:])
print(f"{'figure':20} {'Starling':>14} {'Ray':>14} {'better by':>10}")
for key, theirs in ray.items():
    ours = starling[key]
    ratio = theirs / ours if key.endswith("_s") and not key.endswith("_per_s") else ours / theirs
    print(f"{key:20} {ours:14.3f} {theirs:14.3f} {ratio:9.1f}x")
print(f"floor of Starling's run: Unix-socket round trip {starling['uds_round_trip_us']:.1f} us, memcpy {starling['memcpy_gbps']:.1f} GB/s")
PYTHON
[ -z "${RECORD:-}" ] || cat "$folder/starling.json" "$folder/ray.json"
