#!/usr/bin/env bash
# Every C++ file is as clang-format 14 writes it by .clang-format: `make format` does so. Skipped (77) without that version.
set -uo pipefail
cd "${1:?source folder}" || exit 1
format=$(command -v clang-format-14 || command -v clang-format) || { echo "skipped: clang-format is not installed"; exit 77; }
case "$("$format" --version)" in *"version 14."*) ;; *) echo "skipped: $("$format" --version) is not version 14"; exit 77 ;; esac
found=$(find runtime placement rl examples bench tests \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) -print0 | xargs -0 "$format" --dry-run 2>&1 | grep 'warning:')
[ -z "$found" ] && exit 0
echo "not formatted, and \`make format\` mends it:"
cut -d: -f1 <<<"$found" | sort | uniq -c | sort -rn | head -20
exit 1
