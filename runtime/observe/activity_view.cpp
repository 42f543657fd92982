#include "runtime/observe/activity_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace runtime {

using namespace activity;

namespace {

constexpr std::uint64_t kCountMax = std::uint64_t{1}
                                    << 62;  // more events than a process lives to record

/// The page in this process's memory, for a moment.
class Mapping {
 public:
  Mapping(int fd, int protection)
      : base_(::mmap(nullptr, sizeof(Layout), protection, MAP_SHARED | MAP_NORESERVE, fd, 0)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (ok()) ::munmap(base_, sizeof(Layout));
  }
  bool ok() const { return base_ != MAP_FAILED; }
  Layout& operator*() const { return *static_cast<Layout*>(base_); }
  Layout* operator->() const { return static_cast<Layout*>(base_); }

 private:
  void* base_;
};

/// The bytes of the UTF-8 character that begins there; 0: none does.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const std::size_t bytes = first >= 0xc2 && first <= 0xdf   ? 2
                            : (first & 0xf0) == 0xe0         ? 3
                            : first >= 0xf0 && first <= 0xf4 ? 4
                                                             : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool no_character = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return too_long || no_character ? 0 : bytes;
}

/// Printable UTF-8, and no longer than it says; what is not becomes '?'. A scraper refuses a page
/// whole for one bad byte.
std::string read_name(const Name& name) {
  std::string text(name.text, std::min<std::size_t>(name.bytes, kNameBytesMax));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_at(std::string_view(text).substr(at));
    if (bytes == 0) text[at] = '?';
    at += std::max<std::size_t>(bytes, 1);
  }
  return text;
}

ActorId load_id(const Cell& high, const Cell& low) {
  const std::uint64_t halves[2] = {high.get(), low.get()};
  ActorId id;
  std::memcpy(id.bytes.data(), halves, sizeof halves);
  return id;
}

std::size_t at_most(const std::atomic<std::uint32_t>& count, std::size_t most) {
  return std::min<std::size_t>(count.load(std::memory_order_acquire), most);
}

std::string method_name(const Layout& layout, std::uint64_t method) {
  const std::size_t methods = at_most(layout.methods, kMethodsMax);
  return method < methods ? read_name(layout.method_names[method]) : "?";
}

std::optional<ActivitySnapshot::Running> read_running(const Layout& layout,
                                                      const RunningSlot& slot) {
  const std::uint64_t begun = slot.begun_ns.value.load(std::memory_order_acquire);
  if (begun == 0) return std::nullopt;
  ActivitySnapshot::Running running{static_cast<std::int32_t>(slot.tid.get()),
                                    load_id(slot.actor_high, slot.actor_low),
                                    method_name(layout, slot.method.get()), begun};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.begun_ns.get() != begun) return std::nullopt;  // another call by now
  return running;
}

}  // namespace

ActivitySnapshot read_snapshot(const Layout& layout, bool with_actors) {
  ActivitySnapshot snapshot;
  const std::size_t classes = at_most(layout.classes, kClassesMax);
  const std::size_t threads = at_most(layout.threads, kThreadsMax);
  const std::size_t actors = at_most(layout.actors, kActorsMax);
  for (std::size_t c = 0; c < classes; ++c) {
    ClassLoad load;
    load.name = read_name(layout.class_names[c]);
    load.buckets.resize(kBuckets);
    for (std::size_t t = 0; t < threads; ++t) {
      const ClassCounts& counts = layout.counts[t][c];
      load.calls += counts.calls.get();
      load.failed += counts.failed.get();
      load.sum_ns += counts.sum_ns.get();
      for (std::size_t b = 0; b < kBuckets; ++b) load.buckets[b] += counts.buckets[b].get();
    }
    snapshot.classes.push_back(std::move(load));
  }
  for (std::size_t t = 0; t < threads; ++t) {
    if (auto running = read_running(layout, layout.running[t]))
      snapshot.running.push_back(std::move(*running));
  }
  for (std::size_t a = 0; a < actors; ++a) {
    const ActorSlot& slot = layout.actor_slots[a];
    const ActorId id = load_id(slot.actor_high, slot.actor_low);
    const std::size_t of_class = slot.of_class.get();
    if (id.is_none() || of_class >= classes) continue;
    snapshot.classes[of_class].actors += 1;
    snapshot.classes[of_class].waiting += slot.waiting.get();
    if (!with_actors) continue;
    ActorLoad load;
    load.actor = id;
    load.class_name = snapshot.classes[of_class].name;
    load.calls = slot.calls.get();
    load.failed = slot.failed.get();
    load.busy_ns = slot.busy_ns.get();
    load.waiting = slot.waiting.get();
    snapshot.actors.push_back(std::move(load));
  }
  return snapshot;
}

TraceOfProcess read_trace(const Layout& layout, std::uint64_t& after) {
  TraceOfProcess trace;
  const std::size_t methods = at_most(layout.methods, kMethodsMax);
  for (std::size_t m = 0; m < methods; ++m)
    trace.names.push_back(read_name(layout.method_names[m]));
  const std::uint64_t last = layout.events.load(std::memory_order_acquire);
  if (last < after || last > kCountMax) {  // it began again, or lies
    after = last > kCountMax ? after : last;
    return trace;
  }
  std::uint64_t first = last > kEventsMax ? std::max(after, last - kEventsMax) : after;
  trace.lost = first - after;
  for (std::uint64_t number = first + 1; number <= last; ++number) {
    // Copied while it may be overwritten: the number says whether it was.
    const TraceEvent& from = layout.record[number % kEventsMax];
    const auto stamp = [&] {
      return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(from.number))
          .load(std::memory_order_acquire);
    };
    if (stamp() != number) {
      ++trace.lost;
      continue;
    }
    TraceEvent event;
    std::memcpy(&event, &from, sizeof event);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (stamp() != number) {
      ++trace.lost;
      continue;
    }
    trace.events.append(reinterpret_cast<const char*>(&event), sizeof event);
  }
  after = last;
  return trace;
}

Result<ActivityView> ActivityView::open(FileDescriptor fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, "activity page");
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      static_cast<std::size_t>(info.st_size) != sizeof(Layout)) {
    return invalid_argument("activity page: the descriptor is none of " +
                            std::to_string(sizeof(Layout)) + " sealed bytes");
  }
  return ActivityView(std::move(fd));
}

ActivitySnapshot ActivityView::snapshot(bool with_actors) const {
  Mapping layout(fd_.get(), PROT_READ);
  return layout.ok() && layout->magic == kMagic ? read_snapshot(*layout, with_actors)
                                                : ActivitySnapshot();
}

TraceOfProcess ActivityView::trace(std::uint64_t& after) const {
  Mapping layout(fd_.get(), PROT_READ | PROT_WRITE);  // atomic_ref takes no const
  return layout.ok() && layout->magic == kMagic ? read_trace(*layout, after) : TraceOfProcess();
}

void ActivityView::record_until(std::uint64_t ns) {
  Mapping layout(fd_.get(), PROT_READ | PROT_WRITE);
  if (layout.ok()) layout->record_until_ns.store(ns, std::memory_order_relaxed);
}

int ActivityView::stack_signal() const {
  Mapping layout(fd_.get(), PROT_READ);
  return layout.ok() ? static_cast<int>(layout->stack_signal.load(std::memory_order_relaxed)) : 0;
}

std::vector<std::uint64_t> ActivityView::stack(std::size_t slot, std::uint64_t request,
                                               std::uint32_t tid) const {
  Mapping layout(fd_.get(), PROT_READ);
  if (!layout.ok() || slot >= kStacksMax) return {};
  const StackSlot& stack = layout->stacks[slot];
  if (stack.request.load(std::memory_order_acquire) != request || stack.tid != tid) return {};
  const auto count = std::min<std::size_t>(stack.frames, kFramesMax);
  return {stack.addresses, stack.addresses + count};
}

}  // namespace runtime
