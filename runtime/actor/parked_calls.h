// ParkedCalls: calls in line whose callers do not read what they were answered. They wait outside of the actor's lanes, so that replies nobody
// takes do not pile up here and other callers are served meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/actor/actor_job.h"

namespace runtime {

/// By connection, each in its order. Not thread-safe: ActorHost's mutex guards it. Few callers are ever here at once.
class ParkedCalls {
 public:
  bool has(const Channel* channel) const { return find(channel) != lines_.end(); }
  bool empty() const { return lines_.empty(); }
  std::size_t size() const {
    std::size_t total = 0;
    for (const Entry& entry : lines_) total += entry.line->size();
    return total;
  }

  /// Whether it is the first of that connection.
  bool park(std::unique_ptr<ActorJob> job) {
    auto found = find(job->channel.get());
    const bool first = found == lines_.end();
    if (first) found = lines_.insert(found, Entry{job->channel.get(), std::make_unique<JobLine>()});
    found->line->push(std::move(job));
    return first;
  }
  /// All of that connection, in order; null when there is none.
  std::unique_ptr<JobLine> release(const Channel* channel) {
    auto found = find(channel);
    if (found == lines_.end()) return nullptr;
    std::unique_ptr<JobLine> line = std::move(found->line);
    lines_.erase(found);
    return line;
  }
  /// One call; null: it is not here.
  std::unique_ptr<ActorJob> take(const Channel* channel, std::uint64_t sequence) {
    auto found = find(channel);
    if (found == lines_.end()) return nullptr;
    return found->line->take_first([&](const ActorJob& job) { return job.call.sequence == sequence; });
  }
  /// Any call; null when none is left.
  std::unique_ptr<ActorJob> drain() {
    while (!lines_.empty()) {
      if (auto job = lines_.back().line->pop()) return job;
      lines_.pop_back();
    }
    return nullptr;
  }

 private:
  struct Entry {
    const Channel* channel;
    std::unique_ptr<JobLine> line;
  };

  std::vector<Entry>::const_iterator find(const Channel* channel) const {
    return std::find_if(lines_.begin(), lines_.end(), [&](const Entry& entry) { return entry.channel == channel; });
  }
  std::vector<Entry>::iterator find(const Channel* channel) {
    return std::find_if(lines_.begin(), lines_.end(), [&](const Entry& entry) { return entry.channel == channel; });
  }

  std::vector<Entry> lines_;
};

}  // namespace runtime
