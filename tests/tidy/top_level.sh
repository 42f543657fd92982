#!/usr/bin/env bash
# The top level holds these and dot files, nothing else; no file names a path of a developer's machine.
set -uo pipefail
cd "${1:?source folder}" || exit 1
bad=0
allowed=' CHANGELOG.md CMakeLists.txt CMakePresets.json LICENSE Makefile README.md bench docs examples placement rl runtime tests '
tracked=$(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u)
for entry in ${tracked:-$(ls)}; do
  case "$entry" in .*|build) continue ;; esac
  [[ "$allowed" == *" $entry "* ]] || { echo "$entry does not belong at the top level"; bad=1; }
done
home_path='/(root|home/[a-z]+|var/tmp)/'
found=$(git grep -nE "$home_path" -- . ':!tests/tidy' 2>/dev/null | head)
[ -z "$found" ] || { echo "$found"; echo '  ^ a path of one machine'; bad=1; }
exit $bad
