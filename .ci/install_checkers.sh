#!/usr/bin/env bash
# Installs what `make check-change` needs in addition to the packages of a build, as root on Debian. Exit code 1: it is not there.
set -uo pipefail
present() { command -v clang++ >/dev/null && command -v clang-tidy >/dev/null && command -v clang-format >/dev/null; }
present && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends clang clang-tidy clang-format >&2
fi
present
