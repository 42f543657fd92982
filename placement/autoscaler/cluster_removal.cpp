#include "placement/autoscaler/cluster_removal.h"

#include <algorithm>
#include <utility>

#include "runtime/core/duration.h"
#include "runtime/core/log.h"

namespace placement {

using runtime::Status;

namespace {

constexpr std::chrono::milliseconds kRemoveAgain{1000};
constexpr std::size_t kLeftNamedMax = 20;
constexpr std::size_t kWhyLeftMax = 500;  // characters

}  // namespace

ClusterRemoval::ClusterRemoval(runtime::EventLoop& loop, NodePlanner& planner,
                               NodeProvider& provider, Record record)
    : planner_(planner),
      provider_(provider),
      record_(std::move(record)),
      again_timer_(loop.context()),
      stop_timer_(loop.context()) {}

void ClusterRemoval::start(std::chrono::milliseconds timeout, std::function<void()> done) {
  timeout_ = timeout;
  done_ = std::move(done);
  stop_timer_.expires_after(timeout);
  stop_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec || !done_) return;
    const std::string still_there = left();
    LOG(error, "{}",
        still_there.empty() ? "that the cluster has stopped could not be recorded in time"
                            : still_there);
    std::exchange(done_, nullptr)();
  }));
  remove_all();
}

void ClusterRemoval::remove_all() {
  const std::vector<std::string> ids = to_be_removed();
  LOG(info, "the cluster stops: {} nodes to be removed", ids.size());
  if (ids.empty()) {
    return record_([this](const Status& status) {
      if (!status.ok()) LOG(warn, "{}", status.message());
      if (done_) std::exchange(done_, nullptr)();
    });
  }
  removing_ = ids.size();
  for (const std::string& id : ids) {
    provider_.remove(id,
                     lifetime_.guard([this, id](const Status& status) { on_removed(id, status); }));
  }
}

void ClusterRemoval::on_removed(const std::string& id, const Status& status) {
  if (status.ok()) {
    planner_.forget(id);
    why_left_.erase(id);
  } else {
    LOG(warn, "node {}: {}", id, status.message());
    why_left_[id] = status.message();
  }
  if (--removing_ > 0 || !done_) return;
  again_timer_.expires_after(why_left_.empty() ? std::chrono::milliseconds(0) : kRemoveAgain);
  again_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec && done_) remove_all();
  }));
}

std::vector<std::string> ClusterRemoval::to_be_removed() const {
  std::vector<std::string> ids;
  for (const auto& [id, node] : planner_.nodes()) {
    const bool ends_by_itself =
        provider_.ends_with_cluster() &&
        (node.phase == NodePhase::kJoined || node.phase == NodePhase::kRetiring);
    if (!ends_by_itself) ids.push_back(id);
  }
  return ids;
}

std::string ClusterRemoval::left() const {
  const std::vector<std::string> ids = to_be_removed();
  if (ids.empty()) return "";
  std::string text = "the autoscaler could not remove " + std::to_string(ids.size()) +
                     (ids.size() == 1 ? " machine" : " machines") + " within stop_timeout, " +
                     runtime::describe_duration(timeout_) +
                     "; the remaining nodes may keep running, and cost:";
  for (std::size_t i = 0; i < std::min(ids.size(), kLeftNamedMax); ++i) {
    const auto why = why_left_.find(ids[i]);
    const std::string by_hand = provider_.removal_by_hand(ids[i]);
    text +=
        "\n  " + ids[i] + ": " +
        (why == why_left_.end() ? "its removal has not ended" : why->second.substr(0, kWhyLeftMax));
    if (!by_hand.empty()) text += "\n    by hand: " + by_hand;
  }
  if (ids.size() > kLeftNamedMax)
    text += "\n  and " + std::to_string(ids.size() - kLeftNamedMax) + " more";
  return text;
}

}  // namespace placement
