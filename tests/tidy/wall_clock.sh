#!/usr/bin/env bash
# No decision depends on the wall clock, which people and NTP set: deadlines, leases and pauses are of steady_now(). Times of files and of log lines are for people.
set -uo pipefail
cd "${1:?source folder}" || exit 1
found=$(grep -rnE --include='*.h' --include='*.cpp' 'system_clock|CLOCK_REALTIME|gettimeofday|[^_.a-z]time\((nullptr|NULL|0|&)|file_clock|utc_clock' runtime placement | grep -v '^runtime/core/clock.cpp:')
[ -z "$found" ] || { echo "$found"; echo '  ^ the wall clock jumps: use runtime/core/clock.h'; exit 1; }
