// CallStreams: the streams of calls that yield values, by the calls' sequence numbers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "runtime/call/fwd.h"

namespace runtime {

/// Not thread-safe. Takes one pointer while no call has yielded values.
class CallStreams {
 public:
  void add(std::uint64_t sequence, const std::shared_ptr<StreamState>& stream) {
    if (!streams_) streams_ = std::make_unique<Streams>();
    std::erase_if(*streams_, [](const auto& entry) { return entry.second.expired(); });
    streams_->emplace(sequence, stream);
  }
  /// Null: its reader has given up.
  std::shared_ptr<StreamState> find(std::uint64_t sequence) const {
    if (!streams_) return nullptr;
    const auto found = streams_->find(sequence);
    return found == streams_->end() ? nullptr : found->second.lock();
  }

 private:
  using Streams = std::map<std::uint64_t, std::weak_ptr<StreamState>>;
  std::unique_ptr<Streams> streams_;
};

}  // namespace runtime
