#!/usr/bin/env bash
# A test waits for an event: eventually(), a latch, a Gate, a message. The pauses that it makes on purpose have a name
# (tests/support/pauses.h), and of a simulated clock only World::sleep() knows.
set -uo pipefail
cd "${1:?source folder}" || exit 1
folders=(tests)
helpers='^tests/support/(eventually|pauses)\.h:'
sleeps='sleep_(for|until) *\(|\b(u|nano|clock_nano)sleep *\(|(^|[^A-Za-z0-9_>])::sleep *\(|^\s*sleep *\('
# A loop around these spins without an end where what it waits for does not come.
spins='this_thread::yield *\(|\b(sched|pthread)_yield *\('
# Without a file to look at, and a wait without a condition whose result no check looks at.
polls='\bpoll\((nullptr|NULL|0),|\bselect\(0, *(nullptr|NULL|0),'
time='(std::chrono::)?((nano|micro|milli)?seconds|minutes)\([0-9]|[0-9]+(ns|us|ms|s|min)\b'
waits="^\\s*(\\(void\\) *)?[A-Za-z0-9_.>()-]+(\\.|->)wait_(for|until)\\(([a-z_]+, *)?($time)[^,;]*\\);"
# A nap of an event loop: a bound of less than a second, and no look at whether the event came.
short='(std::chrono::)?(nano|micro|milli)seconds\([0-9]|[0-9]+(ns|us|ms)\b'
naps="^\\s*(\\(void\\) *)?[a-z][A-Za-z0-9_.>()-]*(\\.|->)run_until\\([^;]*($short)[^;]*\\);"
# An eventually() written by hand: what is waited for, and the time.
bounded='while *\(.*(&& *[A-Za-z0-9_:]*now\(\) *<|now\(\) *< *[a-z_]+ *&& *!)'
found=$(grep -rnE --include='*.h' --include='*.cpp' "$sleeps|$spins|$polls|$waits|$naps|$bounded" "${folders[@]}" \
  | grep -vE "$helpers|call\.sleep_for\(|async_sleep|world_\.|&& !HasFailure\(\)")
[ -z "$found" ] || { echo "$found"; echo '  ^ wait for what has to happen (tests/support/eventually.h, gate.h), or say what the pause is (pauses.h)'; exit 1; }
