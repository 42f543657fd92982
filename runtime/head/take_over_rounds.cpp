#include "runtime/head/take_over_rounds.h"

#include <algorithm>

namespace runtime {

void TakeOverRounds::begin(NodeId node, std::chrono::milliseconds time) {
  const std::uint64_t number = ++rounds_;
  Round& round = last_[node] = {number, 1, 0};  // until all are asked
  for (const auto& [id, info] : context_.tables.nodes().all()) {
    if (id == node) continue;
    ++round.outstanding;
    context_.links.request(
        id, ControlRequest{{}, time, control::TakeOver{node}},
        [this, node, number, id = id](Result<ControlAnswer> answer) {
          const auto* failed = answer.ok() ? std::get_if<std::int64_t>(&*answer) : nullptr;
          // What a node that has gone referred to is gone too.
          const std::uint64_t lacking =
              failed ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, *failed))
              : context_.tables.nodes().contains(id) ? 1
                                                     : 0;
          on_answer(node, number, lacking);
        });
  }
  on_answer(node, number, 0);
}

void TakeOverRounds::on_answer(NodeId node, std::uint64_t number, std::uint64_t failed) {
  auto found = last_.find(node);
  if (found == last_.end()) return;
  Round& round = found->second;
  if (round.number != number || round.outstanding == 0) return;
  round.failed += failed;
  if (--round.outstanding == 0) on_end_(node);
}

void TakeOverRounds::cancel(NodeId node) {
  auto found = last_.find(node);
  if (found != last_.end()) found->second.outstanding = 0;
}

bool TakeOverRounds::is_under_way(NodeId node) const {
  auto found = last_.find(node);
  return found != last_.end() && found->second.outstanding > 0;
}

std::uint64_t TakeOverRounds::failed(NodeId node) const {
  auto found = last_.find(node);
  return found == last_.end() ? 0 : found->second.failed;
}

}  // namespace runtime
