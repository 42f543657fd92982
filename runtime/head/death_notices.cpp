#include "runtime/head/death_notices.h"

#include <utility>

namespace runtime {

DeathNotices::Together::Together(DeathNotices& notices)
    : notices_(notices), outer_(std::exchange(notices.innermost_, this)) {}

DeathNotices::Together::~Together() {
  notices_.innermost_ = outer_;
  for (auto& [job, actors] : dead_) {
    const ControlEvent event = control::ActorsDied{job, std::move(actors)};
    for (const auto& [node, info] : notices_.context_.tables.nodes().all())
      notices_.context_.links.event(node, event);
  }
}

void DeathNotices::announce(const ActorRecord& record) {
  if (innermost_) return innermost_->add(record);
  Together alone(*this);
  alone.add(record);
}

}  // namespace runtime
