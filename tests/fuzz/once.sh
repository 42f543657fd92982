#!/usr/bin/env bash
# Runs one fuzz target briefly, from a fixed seed: once.sh PROGRAM SEEDS.tar.gz.
# libFuzzer writes what it finds into the first folder it is given. That is one next to the program, new each time. A target without seeds starts from nothing.
set -euo pipefail
program=$1 seeds=$2
work=$(mktemp -d "$program-XXXXXX")
status=0
from=()
mkdir "$work/corpus"
if [ -f "$seeds" ]; then
  mkdir "$work/seeds"
  tar --extract --gzip --file "$seeds" --directory "$work/seeds"
  from=("$work/seeds")
fi
"$program" -runs=2000 -seed=1 "-artifact_prefix=$work/" "$work/corpus" "${from[@]}" || status=$?
rm -rf "$work/corpus" "$work/seeds"
rmdir "$work" 2>/dev/null || echo "the input that failed is in $work" >&2
exit $status
