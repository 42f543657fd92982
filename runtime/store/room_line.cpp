#include "runtime/store/room_line.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace runtime::object_detail {

void RoomLine::wait(std::uint64_t bytes, ExtentTable::Client client, Deadline deadline,
                    Attempt attempt, GiveUp give_up) {
  if (line_.empty() && !serving_ && attempt()) return;
  if (deadline <= steady_now()) return give_up();
  line_.push_back({bytes, client, deadline, std::move(attempt), std::move(give_up)});
  wanted_bytes_ += bytes;
  arm();
}

// An attempt may free or ask for memory itself, which comes back here.
void RoomLine::serve() {
  if (std::exchange(serving_, true)) return;
  while (!line_.empty() && line_.front().attempt()) {
    wanted_bytes_ -= line_.front().bytes;
    line_.pop_front();
  }
  serving_ = false;
}

void RoomLine::drop(ExtentTable::Client client) {
  std::vector<Waiter> gone;  // what they own may call back
  std::erase_if(line_, [&](Waiter& waiter) {
    if (waiter.client != client) return false;
    wanted_bytes_ -= waiter.bytes;
    gone.push_back(std::move(waiter));
    return true;
  });
}

void RoomLine::stop() {
  timer_.cancel();
  wanted_bytes_ = 0;
  for (Waiter& waiter : std::exchange(line_, {})) waiter.give_up();
}

void RoomLine::expire() {
  const Deadline now = steady_now();
  std::vector<Waiter> late;
  std::erase_if(line_, [&](Waiter& waiter) {
    if (waiter.deadline > now) return false;
    wanted_bytes_ -= waiter.bytes;
    late.push_back(std::move(waiter));
    return true;
  });
  for (Waiter& waiter : late) waiter.give_up();
  serve();  // the next in line may need less
  arm();
}

void RoomLine::arm() {
  if (line_.empty()) return;
  Deadline first = Deadline::max();
  for (const Waiter& waiter : line_) first = std::min(first, waiter.deadline);
  timer_.expires_at(first);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    if (auto self = weak.lock(); self && !ec) self->expire();
  });
}

}  // namespace runtime::object_detail
