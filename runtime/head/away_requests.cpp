#include "runtime/head/away_requests.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <variant>

namespace runtime {

bool awaits_node(const ControlRequest::Body& body) {
  if (const auto* objects = std::get_if<ObjectControl>(&body)) {
    return std::holds_alternative<control::AdoptObject>(*objects) ||
           std::holds_alternative<control::FindObject>(*objects) ||
           std::holds_alternative<control::ListObjects>(*objects);
  }
  return std::holds_alternative<control::CancelJob>(body) ||
         std::holds_alternative<control::ExpectToken>(body);
}

void AwayRequests::add(NodeId node, Deadline now, Request request) {
  const Deadline deadline = now + request.request.timeout;
  waiting_[node].push_back({deadline, std::move(request)});
}

std::vector<AwayRequests::Request> AwayRequests::take(NodeId node, Deadline now) {
  std::vector<Request> taken;
  for (Waiting& waiting : std::exchange(waiting_[node], {})) {
    const auto left = std::chrono::floor<std::chrono::milliseconds>(waiting.deadline - now);
    waiting.request.request.timeout = std::max(left, std::chrono::milliseconds(1));
    taken.push_back(std::move(waiting.request));
  }
  waiting_.erase(node);
  return taken;
}

void AwayRequests::expire(Deadline now) {
  std::vector<std::pair<NodeId, Waiting>> expired;
  for (auto& [node, all] : waiting_) {
    const auto late = std::stable_partition(
        all.begin(), all.end(), [now](const Waiting& waiting) { return waiting.deadline > now; });
    for (auto waiting = late; waiting != all.end(); ++waiting)
      expired.emplace_back(node, std::move(*waiting));
    all.erase(late, all.end());
  }
  std::erase_if(waiting_, [](const auto& node) { return node.second.empty(); });
  for (auto& [node, waiting] : expired) {
    waiting.request.answer(
        unavailable("node " + node.short_hex() +
                    " has not come back to the head since that was started again"));
  }
}

Deadline AwayRequests::earliest() const {
  Deadline earliest = Deadline::max();
  for (const auto& [node, all] : waiting_) {
    for (const Waiting& waiting : all) earliest = std::min(earliest, waiting.deadline);
  }
  return earliest;
}

}  // namespace runtime
