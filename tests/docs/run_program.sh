#!/usr/bin/env bash
# Runs a documented program, which starts its own cluster: run_program.sh BUILD_FOLDER PROGRAM [ARGUMENT...]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset STARLING_ADDRESS
cd "$folder"  # where a program that trains leaves its run
STARLING_PROGRAM=$1/bin/starling STARLING_SESSION_ROOT=$folder/s timeout 120 "${@:2}"
