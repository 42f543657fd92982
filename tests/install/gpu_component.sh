#!/usr/bin/env bash
# The files of the component gpu: every path of the group gpu in wheels.txt, in the wheels' layout, and a missing one is named.
#   gpu_component.sh SOURCE
set -euo pipefail
source_dir=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "error: $1"; exit 1; }
paths() { awk '$2 == "gpu" { for (i = 5; i <= NF; ++i) print $i }' "$source_dir/.ci/wheels.txt"; }
install_gpu() {
  cmake -DCMAKE_INSTALL_PREFIX="$folder/prefix" -Droot="$folder/wheels" -Dwheels="$source_dir/.ci/wheels.txt" \
    -P "$source_dir/.cmake/InstallGpu.cmake" >"$folder/log" 2>&1
}

while read -r path; do  # a file, or a folder with one
  mkdir -p "$folder/wheels/$(dirname "$path")"
  case $path in
    *.so | *.so.*) echo "$path" >"$folder/wheels/$path" ;;
    *) mkdir -p "$folder/wheels/$path"; echo "$path" >"$folder/wheels/$path/inside" ;;
  esac
done < <(paths)
install_gpu || fail "$(cat "$folder/log")"
installed=0
while read -r path; do
  file=$folder/prefix/lib/starling/$path
  [ -d "$file" ] && file=$file/inside
  [ "$(cat "$file")" = "$path" ] || fail "$path was not installed"
  installed=$((installed + 1))
done < <(paths)
[ "$installed" -ge 10 ] || fail "only $installed paths in wheels.txt"
[ -e "$folder/prefix/lib/starling/torch/lib/libtorch_cuda.so" ] || fail "no libtorch_cuda.so next to LibTorch's own"

rm "$folder/wheels/torch/lib/libtorch_cuda.so"
! install_gpu || fail "installed without libtorch_cuda.so"
tr -s ' \n' ' ' <"$folder/log" | grep -q 'torch/lib/libtorch_cuda.so of torch==[0-9.]* is not there' || fail "not named: $(cat "$folder/log")"
