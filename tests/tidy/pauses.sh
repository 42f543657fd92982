#!/usr/bin/env bash
# A test waits for an event: eventually(), a latch, a Gate, a message. The pauses that it makes on purpose have a name
# (tests/support/pauses.h), and of a simulated clock only World::sleep() knows.
set -uo pipefail
cd "${1:?source folder}" || exit 1
folders=(tests)
helpers='^tests/support/(eventually|pauses)\.h:'
found=$(grep -rnE --include='*.h' --include='*.cpp' 'sleep_(for|until)\(|\b(u|nano|clock_nano)sleep\(|(^|[^A-Za-z0-9_>])::sleep\(|^\s*sleep\(' "${folders[@]}" \
  | grep -vE "$helpers|call\.sleep_for\(|async_sleep")
[ -z "$found" ] || { echo "$found"; echo '  ^ wait for what has to happen (tests/support/eventually.h, gate.h), or say what the pause is (pauses.h)'; exit 1; }
