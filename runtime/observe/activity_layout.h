// The activity page of a worker or driver, in memory that it shares with its node. It says what its
// threads run now, how many calls it has served and how long they took. While someone asks for it,
// it has a record of single calls. The process writes, at the cost of a few stores a call. The node
// reads when it is asked something, also while the process is stuck or stopped, and after it was
// killed. Nothing in here is trusted by the node.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace runtime::activity {

inline constexpr std::uint64_t kMagic = 0x3154434147525453;  // "STRGACT1"
inline constexpr std::size_t kClassesMax = 64;    // the first counts for all that find no place
inline constexpr std::size_t kMethodsMax = 1024;  // likewise
inline constexpr std::size_t kThreadsMax = 1088;  // that run methods at once; more are not seen
inline constexpr std::size_t kActorsMax =
    1 << 17;  // seen one by one; all are counted in their classes
inline constexpr std::size_t kEventsMax = 1 << 15;  // the last ones stay
inline constexpr std::size_t kStacksMax = 128;      // threads whose stacks are taken
inline constexpr std::size_t kFramesMax = 64;
inline constexpr std::size_t kNameBytesMax = 120;

/// Seconds; what took longer falls into its own bucket.
inline constexpr std::array<double, 15> kLatencyBounds = {
    10e-6, 50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 0.1, 0.5, 1, 5, 10, 60, 600};
inline constexpr std::size_t kBuckets = kLatencyBounds.size() + 1;

/// A number that one thread at a time writes, and others read.
struct Cell {
  std::atomic<std::uint64_t> value{0};
  std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
  void set(std::uint64_t next) { value.store(next, std::memory_order_relaxed); }
  void add(std::uint64_t more) { set(get() + more); }  // no locked instruction: there is one writer
};

struct Name {
  std::uint32_t of_class = 0;  // of a method
  std::uint32_t bytes = 0;
  char text[kNameBytesMax] = {};
};
static_assert(sizeof(Name) == 128);

/// What one thread runs now.
struct alignas(64) RunningSlot {
  Cell begun_ns;  // 0: nothing. Read it before and after the rest: equal, and the rest is of one
                  // call
  Cell actor_high, actor_low;
  Cell method;
  Cell tid;
};

/// Counts of one class's calls by one thread.
struct ClassCounts {
  Cell calls, failed, sum_ns;
  Cell buckets[kBuckets];
};

struct alignas(64) ActorSlot {
  Cell actor_high, actor_low;  // none: free
  Cell of_class;
  Cell calls, failed, busy_ns, waiting;
};

enum class EventKind : std::uint8_t { kRan = 1, kCalled = 2, kFetched = 3 };

/// One entry of the record.
struct TraceEvent {
  std::uint64_t number = 0;  // its place in the record, from 1; 0 while it is being written
  std::uint64_t begin_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t flow = 0;   // the same for a call and its running
  std::uint64_t actor = 0;  // the first half of its id
  std::uint64_t bytes = 0;  // of what was fetched
  std::uint32_t tid = 0;
  std::uint32_t method = 0;
  EventKind kind = EventKind::kRan;
  std::uint8_t failed = 0;
  std::uint8_t unused[6] = {};
};
static_assert(sizeof(TraceEvent) == 64);

struct StackSlot {
  std::atomic<std::uint64_t> request{0};  // the number of the request that it answers
  std::uint32_t tid = 0;
  std::uint32_t frames = 0;
  std::uint64_t addresses[kFramesMax] = {};
};

struct Layout {
  std::uint64_t magic = kMagic;
  std::atomic<std::uint32_t> classes{0}, methods{0}, threads{0},
      actors{0};                                  // that were ever in use
  std::atomic<std::uint64_t> record_until_ns{0};  // set by the node
  std::atomic<std::uint64_t> events{0};           // recorded, ever
  std::atomic<std::uint32_t> stack_signal{0};     // that has a thread write its stack; 0: none does
  alignas(4096) std::array<Name, kClassesMax> class_names;
  alignas(4096) std::array<Name, kMethodsMax> method_names;
  alignas(4096) std::array<RunningSlot, kThreadsMax> running;
  alignas(4096) std::array<std::array<ClassCounts, kClassesMax>, kThreadsMax> counts;
  alignas(4096) std::array<ActorSlot, kActorsMax> actor_slots;
  alignas(4096) std::array<StackSlot, kStacksMax> stacks;
  alignas(4096) std::array<TraceEvent, kEventsMax> record;
};

/// The bucket of the histogram for that time.
inline std::size_t bucket_of(std::uint64_t ns) {
  const double seconds = static_cast<double>(ns) * 1e-9;
  std::size_t bucket = 0;
  while (bucket < kLatencyBounds.size() && seconds > kLatencyBounds[bucket]) ++bucket;
  return bucket;
}

}  // namespace runtime::activity
