#!/usr/bin/env bash
# Packs a folder of inputs as tests/fuzz/corpus/NAME.tar.gz; the same inputs give the same archive: pack.sh FOLDER NAME
set -euo pipefail
archive=$(dirname "$0")/corpus/$2.tar.gz
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 --format=ustar \
    --directory "$1" $(cd "$1" && ls -A) | gzip -9n >"$archive"
