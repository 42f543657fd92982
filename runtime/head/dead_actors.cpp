#include "runtime/head/dead_actors.h"

namespace runtime {

namespace {

// The dead are forgotten by the handful.
constexpr auto kForgetTogether = std::chrono::milliseconds(250);

}  // namespace

void DeadActors::tick(Deadline now) {
  const HeadOptions& options = context_.options;
  const std::size_t dead = context_.tables.actors().dead();
  const Deadline before = now - options.dead_kept_for;
  std::size_t count = 0;
  while (dead - count > options.dead_kept) {
    // A head that was restarted does not know when those from before died.
    const bool is_dated = deaths_.size() >= dead - count;
    if (is_dated && deaths_.front() > before && dead - count <= options.dead_kept_max) break;
    if (is_dated) deaths_.pop_front();
    ++count;
  }
  if (count > 0) context_.commit(command::ForgetDead{count});
}

Deadline DeadActors::next_tick() const {
  if (context_.tables.actors().dead() <= context_.options.dead_kept || deaths_.empty())
    return Deadline::max();
  return deaths_.front() + context_.options.dead_kept_for + kForgetTogether;
}

}  // namespace runtime
