#include "runtime/transport/refusal_log.h"

#include <utility>

#include "runtime/core/log.h"

namespace runtime {

void RefusalLog::note(const std::string& peer, const Status& why) {
  const Deadline now = steady_now();
  if (begun_ == Deadline::min() || now - begun_ >= options_.span) {
    begun_ = now;
    lines_ = 0;
    if (const std::uint64_t more = std::exchange(unwritten_, 0); more > 0)
      LOG(warn, "refused {} more connections, which are not listed", more);
  }
  if (lines_++ < options_.lines_max)
    LOG(warn, "refused {}{}: {}", what_, peer, why.message());
  else
    ++unwritten_;
}

}  // namespace runtime
