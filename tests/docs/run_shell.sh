#!/usr/bin/env bash
# Runs the shell blocks below `<!-- test: shell -->` of a page, on its own clusters and port: run_shell.sh SOURCE BUILD PAGE
set -euo pipefail
source_dir=$1 build_dir=$2 page=$3
folder=$(mktemp -d)
export STARLING_SESSION_ROOT=$folder/s STARLING_CACHE=$folder/c
stop() { "$build_dir/bin/starling" stop >/dev/null 2>&1 || true; rm -rf "$folder"; }
trap stop EXIT
unset STARLING_ADDRESS STARLING_TOKEN STARLING_TOKEN_FILE
while port=$((20000 + RANDOM % 12000)); (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do :; done
cd "$source_dir"
export PATH="$build_dir/bin:$PATH"
awk '/^<!-- test: shell -->/ { wanted = 1; next } /^```/ { inside = wanted && !inside; if (!inside) wanted = 0; next } inside' "$page" \
  | sed -E "s/\b6400\b/$port/g; s|(\\\$PWD/)?build/release|$build_dir|g" >"$folder/block.sh"
[ -s "$folder/block.sh" ] || { echo "error: $page has no block marked <!-- test: shell -->" >&2; exit 1; }
timeout 120 bash -eux "$folder/block.sh"
