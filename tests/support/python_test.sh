#!/usr/bin/env bash
# Runs the unit tests of a Python program. Skipped (77) without python3.
set -euo pipefail
python=${STARLING_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: there is no $python"; exit 77; }
export PYTHONPATH=${0%/*} PYTHONDONTWRITEBYTECODE=1
exec "$python" "$1"
