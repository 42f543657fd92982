// ActivityTable: what the processes of a node say of themselves, and what those that have ended had said.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/observe.h"
#include "runtime/observe/activity_view.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// Lives on the event loop.
class ActivityTable {
 public:
  /// Classes by name that are told apart; the others are counted together as "other".
  static constexpr std::size_t kClassesMax = 50;

  /// The page of the process behind the channel. Errors: as ActivityView::open.
  Status adopt(const Channel& channel, Message& message);
  /// Its connection has ended; what its calls came to stays.
  void retire(const Channel& channel);

  /// By class, since the node started.
  std::vector<ClassLoad> classes() const;
  /// The actors that are served now, those first that have most to do; and how many were left out.
  std::vector<ActorLoad> actors(std::size_t most, std::uint64_t* left_out) const;
  /// What the threads of a process run; nothing when it has said nothing.
  std::vector<ActivitySnapshot::Running> running(std::int32_t pid) const;
  const ActivityView* of(std::int32_t pid) const;

  /// Has the processes record single calls until then.
  void record_until(std::uint64_t ns);
  /// What was recorded since the last time, process by process.
  std::vector<TraceOfProcess> take_traces();

 private:
  struct Entry {
    ActivityView view;
    std::int32_t pid = 0;
    std::string role;
    std::uint64_t trace_after = 0;
  };
  using Classes = std::map<std::string, ClassLoad>;
  static void add(Classes& to, const std::vector<ClassLoad>& from, bool living);

  std::map<std::uint64_t, Entry> entries_;  // by the channel's serial
  Classes ended_;
  std::vector<TraceOfProcess> ended_traces_;
  std::uint64_t record_until_ns_ = 0;
};

}  // namespace runtime
