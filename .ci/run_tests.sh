#!/usr/bin/env bash
# Runs a command with its own TMPDIR, and fails if anything is left in it: run_tests.sh COMMAND ARGUMENT...
set -uo pipefail
TMPDIR=$(mktemp -d /tmp/st.XXXX)  # short: names of Unix sockets have at most 107 characters
chmod 711 "$TMPDIR"           # tests of other users pass through; what tests make in it is closed
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$@" || exit
left=$(find "$TMPDIR" -mindepth 1 -maxdepth 1)
[ -z "$left" ] || { echo "error: the tests passed and left behind:"; echo "$left"; exit 1; }
