// ActivityTable: the activity pages of a node's processes, and the last state of those that have
// ended.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/control/observe.h"
#include "runtime/observe/activity_view.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Lives on the event loop.
class ActivityTable {
 public:
  /// Classes by name that are told apart, the first ones for as long as the node lives; the others
  /// are counted together as "other". So no counter ever goes back.
  static constexpr std::size_t kClassesMax = 50;
  /// Of what was recorded, about this much at once: an answer has to fit into a message.
  static constexpr std::size_t kTraceBytesMax = 32 << 20;

  struct Process {
    std::uint64_t connection = 0;  // Channel::serial()
    std::int32_t pid = 0;
    std::string role{};  // "driver", "worker"
  };
  /// Its page; an earlier one of the same connection is retired. Errors: as ActivityView::open.
  Status adopt(Process process, FileDescriptor page);
  /// Its connection has ended; what its calls came to stays.
  void retire(std::uint64_t connection);

  /// By class, since the node started.
  std::vector<ClassLoad> classes();
  /// The actors that are served now, those first that have most to do; and how many were left out.
  std::vector<ActorLoad> actors(std::size_t most, std::uint64_t* left_out) const;
  /// What the threads of a process run; nothing when it has said nothing.
  std::vector<ActivitySnapshot::Running> running(std::int32_t pid) const;
  const ActivityView* of(std::int32_t pid) const;

  /// Has the processes record single calls until then.
  void record_until(std::uint64_t ns);
  /// What was recorded since the last time, process by process; the rest, if it is much, next time.
  std::vector<TraceOfProcess> take_traces(std::size_t bytes_max = kTraceBytesMax);

 private:
  struct Entry {
    ActivityView view;
    Process process;
    std::uint64_t trace_after = 0;
  };
  using Classes = std::map<std::string, ClassLoad>;
  void add(Classes& to, const std::vector<ClassLoad>& from, bool living);
  static TraceOfProcess take_trace(Entry& entry);

  std::map<std::uint64_t, Entry> entries_;  // by connection
  std::set<std::string> named_;             // classes that are told apart
  Classes ended_;
  std::deque<TraceOfProcess> ended_traces_;
  std::size_t ended_trace_bytes_ = 0;
  std::uint64_t last_traced_ = 0;  // the connection after which to continue
  std::uint64_t record_until_ns_ = 0;
};

}  // namespace runtime
