#!/usr/bin/env bash
# Installs the packages of packages.txt that are missing. As root it does so; otherwise it prints the one line to run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -z "${STARLING_NO_INSTALL:-}" ] || exit 0
command -v dpkg-query >/dev/null || {
  echo "error: this is not a Debian or Ubuntu system; install the libraries named in .ci/packages.txt yourself, then run with STARLING_NO_INSTALL=1" >&2; exit 1; }

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
known() { apt-cache show "$1" >/dev/null 2>&1; }

missing=() updated=
while IFS= read -r line; do
  IFS='|' read -ra names <<<"$line"
  for name in "${names[@]}"; do installed "$name" && continue 2; done
  missing+=("$line")
done < <(grep -Ev '^(#|$)' "$here/packages.txt")
[ ${#missing[@]} -gt 0 ] || exit 0

chosen=()
for line in "${missing[@]}"; do
  IFS='|' read -ra names <<<"$line"
  pick=
  for attempt in first second; do
    for name in "${names[@]}"; do known "$name" && { pick=$name; break 2; }; done
    # A fresh system has no package lists yet.
    [ "$attempt" = first ] && [ -z "$updated" ] && [ "$(id -u)" = 0 ] && { apt-get update -q >&2; updated=1; }
  done
  chosen+=("${pick:-${names[0]}}")
done
if [ "$(id -u)" != 0 ]; then
  echo "error: packages are missing and this user is not root. Run this line once, then try again:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${chosen[*]}" >&2
  exit 1
fi
echo "installing ${#chosen[@]} packages: ${chosen[*]}" >&2
[ -n "$updated" ] || apt-get update -q >&2
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${chosen[@]}" >&2
