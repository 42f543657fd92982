// Recording: the profile of one process. A value that travels from workers to the controller.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace rl::profile {

/// What a span is of, from the outside in.
enum class SpanKind : std::uint8_t {
  kStep,       // a training step
  kLap,        // a part of one, of the controller's: gen, adv, update_actor
  kCall,       // a method of an actor
  kOperation,  // one of ours: linear, attention backward, all-reduce
  kKernel,     // one of ATen's: aten::mm
};

struct RecordedThread {
  std::int64_t id = 0;
  std::string name;

  auto fields() { return std::tie(id, name); }
};

/// Spans as columns, in the order in which they ended, thread by thread. Times are of the process's
/// steady clock.
struct Recording {
  std::vector<std::string> names;
  std::vector<RecordedThread> threads;
  std::vector<std::uint32_t> name;    // of each span: which of `names`
  std::vector<std::uint32_t> thread;  // which of `threads`
  std::vector<SpanKind> kind;
  std::vector<std::int64_t> begin_ns;
  std::vector<std::int64_t> end_ns;
  std::uint64_t cut = 0;  // spans that were over the limit

  std::size_t size() const { return name.size(); }
  /// Whether the columns fit together: it may have come over the wire.
  bool consistent() const;

  auto fields() { return std::tie(names, threads, name, thread, kind, begin_ns, end_ns, cut); }
};

/// How one process is to be profiled.
struct ProfileRequest {
  bool wanted = true;  // a worker that is not: it answers, and records nothing
  std::int64_t spans_max = 0;

  auto fields() { return std::tie(wanted, spans_max); }
};

/// The answer: which machine's steady clock its times will be of, and what it shows now.
struct ProfileStarted {
  std::string machine;
  std::int64_t now_ns = 0;

  auto fields() { return std::tie(machine, now_ns); }
};

}  // namespace rl::profile
