// RequestTable: the answers to the last requests that must not run twice. Part of ClusterTables.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/head/table_changes.h"

namespace runtime {

namespace command {
struct RequestBegun;
struct RequestAnswered;
}  // namespace command
namespace journal {
struct Request;
}

/// A request that has begun, or was answered.
struct RequestRecord {
  RequestId id;
  std::uint64_t order = 0;           // in which they were recorded, from 1
  std::uint64_t at_ms = 0;           // Unix time
  std::uint64_t about = 0;           // the incarnation that it is about; 0: none
  std::optional<std::string> reply;  // encoded; none: it goes on, or the reply is too long to keep
  bool operator==(const RequestRecord&) const = default;
};

/// Plain data with one way to change it (cluster_tables.h). Records lie in a ring: the oldest one's
/// slot is the next one's, so that a journal forgets it without being told.
class RequestTable {
 public:
  /// How many are remembered, and for how long: nodes repeat a request until its deadline, and wait
  /// ten minutes for a head.
  static constexpr std::size_t kKept = 50'000;
  static constexpr std::chrono::milliseconds kKeptFor = std::chrono::minutes(20);

  void apply(const command::RequestBegun& c);
  void apply(const command::RequestAnswered& c);

  /// Null: it is not known (any more).
  const RequestRecord* find(RequestId id) const;
  /// Null: the slot is empty.
  const RequestRecord* in_slot(std::size_t slot) const;
  const std::map<std::uint64_t, RequestRecord>& all() const { return records_; }

  void follow() { changed_.follow(); }
  void take_changes(std::vector<JournalWrite>& writes);
  Status restore(const journal::Request& entry);

 private:
  void add(RequestRecord record);
  static std::size_t slot_of(std::uint64_t order) { return order % kKept; }

  std::map<std::uint64_t, RequestRecord> records_;  // by order
  std::map<RequestId, std::uint64_t> orders_;
  std::uint64_t last_ = 0;
  TableChanges<std::size_t> changed_;  // slots
};

}  // namespace runtime
