// Times for a head that has died and is started again by the node next to it. One side waits before
// it starts it, the other for it to come back.
#pragma once

#include <chrono>

namespace runtime {

/// The longest pause before a head that dies again and again is started again (HeadChild).
inline constexpr std::chrono::milliseconds kHeadRestartMax{1000};
/// From its start until the other nodes have found it, on a machine that is busy, too. It reads its
/// journal, the node next to it connects and hands them on.
inline constexpr std::chrono::milliseconds kHeadFoundMax{5000};
/// A head that was away for longer is not about to be started by the node next to it: that node has
/// gone too (HeadLink).
inline constexpr std::chrono::milliseconds kHeadAwayMax = kHeadRestartMax + kHeadFoundMax;

}  // namespace runtime
