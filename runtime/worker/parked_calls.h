// ParkedCalls: calls in line whose callers do not read what they were answered, and those behind a
// call that waits for its arguments' bytes. They wait outside of the actor's lanes, so that replies
// that no caller takes do not pile up here and other callers are served meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/worker/actor_job.h"

namespace runtime {

struct Lane;

/// By connection, each in its order; those held in one lane apart. Not thread-safe: ActorHost's
/// mutex guards it. Few callers are ever here at once.
class ParkedCalls {
 public:
  /// Whether a call of that connection and lane has to wait here too.
  bool has(const Channel* channel, const Lane* lane) const {
    return find(channel, lane) != lines_.end();
  }
  bool empty() const { return lines_.empty(); }
  std::size_t size() const {
    std::size_t total = 0;
    for (const Entry& entry : lines_) total += entry.line->size();
    return total;
  }

  /// From now on all calls of that connection in that lane wait here.
  void hold(const Channel* channel, const Lane* lane) {
    lines_.push_back({channel, lane, std::make_unique<JobLine>()});
  }
  /// Puts a call of `lane` where its connection's wait. If there are none, all of that connection
  /// in any lane wait from now on, and the answer is true.
  bool park(std::unique_ptr<ActorJob> job, const Lane* lane) {
    auto found = find(job->channel.get(), lane);
    const bool first = found == lines_.end();
    if (first)
      found = lines_.insert(found, Entry{job->channel.get(), nullptr, std::make_unique<JobLine>()});
    found->line->push(std::move(job));
    return first;
  }
  /// What hold(), or with a null lane park(), began; in order. Null when there is none.
  std::unique_ptr<JobLine> release(const Channel* channel, const Lane* lane) {
    auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Entry& entry) {
      return entry.channel == channel && entry.lane == lane;
    });
    if (found == lines_.end()) return nullptr;
    std::unique_ptr<JobLine> line = std::move(found->line);
    lines_.erase(found);
    return line;
  }
  /// One call; null: it is not here.
  std::unique_ptr<ActorJob> take(const Channel* channel, std::uint64_t sequence) {
    for (Entry& entry : lines_) {
      if (entry.channel != channel) continue;
      if (auto job = entry.line->take_first(
              [&](const ActorJob& each) { return each.call.sequence == sequence; }))
        return job;
    }
    return nullptr;
  }
  /// Any call; null when none is left.
  std::unique_ptr<ActorJob> take_any() {
    while (!lines_.empty()) {
      if (auto job = lines_.back().line->pop()) return job;
      lines_.pop_back();
    }
    return nullptr;
  }

 private:
  struct Entry {
    const Channel* channel;
    const Lane* lane;  // null: all
    std::unique_ptr<JobLine> line;
  };

  /// That of the lane before that of all lanes. What is put back from the one may have to wait in
  /// the other, and must come behind nothing younger.
  std::vector<Entry>::const_iterator find(const Channel* channel, const Lane* lane) const {
    auto best = lines_.end();
    for (auto entry = lines_.begin(); entry != lines_.end(); ++entry) {
      if (entry->channel != channel) continue;
      if (entry->lane == lane) return entry;
      if (entry->lane == nullptr) best = entry;
    }
    return best;
  }
  std::vector<Entry>::iterator find(const Channel* channel, const Lane* lane) {
    return lines_.begin() + (std::as_const(*this).find(channel, lane) - lines_.cbegin());
  }

  std::vector<Entry> lines_;
};

}  // namespace runtime
