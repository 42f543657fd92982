#include "runtime/observe/activity_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/core/clock.h"

namespace runtime {

using namespace activity;

namespace {

constexpr std::size_t kNowhere = kThreadsMax;

void store_id(const ActorId& id, Cell& high, Cell& low) {
  std::uint64_t halves[2];
  std::memcpy(halves, id.bytes.data(), sizeof halves);
  high.set(halves[0]);
  low.set(halves[1]);
}

void store_name(Name& to, const std::string& name, std::uint32_t of_class) {
  to.of_class = of_class;
  to.bytes = static_cast<std::uint32_t>(std::min(name.size(), kNameBytesMax));
  std::memcpy(to.text, name.data(), to.bytes);
}

}  // namespace

std::uint64_t activity_now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_now().time_since_epoch())
          .count());
}

Result<std::shared_ptr<ActivityPage>> ActivityPage::create() {
  FileDescriptor fd(::memfd_create("starling-activity", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return errno_status(errno, "activity page: memfd_create");
  if (::ftruncate(fd.get(), sizeof(Layout)) != 0) return errno_status(errno, "activity page");
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* base = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      fd.get(), 0);
  if (base == MAP_FAILED) return errno_status(errno, "activity page: mmap");
  ::madvise(base, sizeof(Layout), MADV_DONTDUMP);
  // A fresh file is all zeros, which is what the members begin with: constructing them would touch
  // every page.
  auto* layout = static_cast<Layout*>(base);
  layout->magic = kMagic;
  store_name(layout->class_names[0], "other", 0);
  store_name(layout->method_names[0], "?", 0);
  layout->classes.store(1, std::memory_order_release);
  layout->methods.store(1, std::memory_order_release);
  return std::shared_ptr<ActivityPage>(new ActivityPage(std::move(fd), layout));
}

std::uint64_t ActivityPage::next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

ActivityPage::~ActivityPage() { ::munmap(layout_, sizeof(Layout)); }

Result<FileDescriptor> ActivityPage::duplicate() const {
  FileDescriptor copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return errno_status(errno, "activity page");
  return copy;
}

std::optional<ActivityPage::ClassRef> ActivityPage::find_class(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto known = classes_.find(name);
  return known == classes_.end() ? std::nullopt : std::optional(known->second);
}

ActivityPage::ClassRef ActivityPage::class_of(const std::string& name,
                                              std::span<const std::string> methods) {
  std::lock_guard lock(mutex_);
  if (auto known = classes_.find(name); known != classes_.end()) return known->second;
  ClassRef ref;
  const std::uint32_t classes = layout_->classes.load(std::memory_order_relaxed);
  if (classes < kClassesMax) {
    store_name(layout_->class_names[classes], name, classes);
    layout_->classes.store(classes + 1, std::memory_order_release);
    ref.index = classes;
  }
  const std::uint32_t next = layout_->methods.load(std::memory_order_relaxed);
  if (next + 1 + methods.size() <= kMethodsMax) {
    ref.constructor = next;
    store_name(layout_->method_names[next], name + "()", ref.index);
    for (std::size_t i = 0; i < methods.size(); ++i)
      store_name(layout_->method_names[next + 1 + i], name + "." + methods[i], ref.index);
    layout_->methods.store(next + 1 + static_cast<std::uint32_t>(methods.size()),
                           std::memory_order_release);
  }
  classes_.emplace(name, ref);
  return ref;
}

ActorSlot* ActivityPage::take_actor(const ActorId& actor, ClassRef of_class) {
  std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  if (!free_actors_.empty()) {
    index = free_actors_.back();
    free_actors_.pop_back();
  } else {
    index = layout_->actors.load(std::memory_order_relaxed);
    if (index >= kActorsMax) return nullptr;
    layout_->actors.store(index + 1, std::memory_order_release);
  }
  ActorSlot& slot = layout_->actor_slots[index];
  for (Cell* cell : {&slot.calls, &slot.failed, &slot.busy_ns, &slot.waiting}) cell->set(0);
  slot.of_class.set(of_class.index);
  store_id(actor, slot.actor_high, slot.actor_low);
  return &slot;
}

void ActivityPage::give_back(ActorSlot* slot) {
  std::lock_guard lock(mutex_);
  store_id({}, slot->actor_high, slot->actor_low);
  free_actors_.push_back(static_cast<std::uint32_t>(slot - layout_->actor_slots.data()));
}

void ActivityPage::record(TraceEvent event) {
  const std::uint64_t number = layout_->events.fetch_add(1, std::memory_order_relaxed) + 1;
  TraceEvent& to = layout_->record[number % kEventsMax];
  std::atomic_ref<std::uint64_t>(to.number).store(0, std::memory_order_release);
  event.number = 0;
  to = event;
  std::atomic_ref<std::uint64_t>(to.number).store(number, std::memory_order_release);
}

std::uint32_t ActivityPage::thread_id() {
  thread_local const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return tid;
}

/// A thread's place in the page, for as long as the thread lives.
struct ActivityPage::ThreadPlace {
  std::weak_ptr<ActivityPage> page;
  std::uint64_t serial = 0;
  std::size_t index = kNowhere;

  ~ThreadPlace() { leave(); }
  void leave() {
    auto held = page.lock();
    if (!held || index == kNowhere) return;
    std::lock_guard lock(held->mutex_);
    held->free_threads_.push_back(index);
  }
};

std::size_t ActivityPage::place() {
  thread_local ThreadPlace own;
  if (own.serial == serial_) return own.index;
  own.leave();
  own.page = weak_from_this();
  own.serial = serial_;
  std::lock_guard lock(mutex_);
  if (!free_threads_.empty()) {
    own.index = free_threads_.back();
    free_threads_.pop_back();
    return own.index;
  }
  own.index = layout_->threads.load(std::memory_order_relaxed);
  if (own.index < kThreadsMax)
    layout_->threads.store(static_cast<std::uint32_t>(own.index) + 1, std::memory_order_release);
  return own.index;
}

void ActivityPage::begin_call(const ActorId& actor, std::uint32_t method, std::uint64_t now_ns) {
  const std::size_t at = place();
  if (at == kNowhere) return;
  RunningSlot& slot = layout_->running[at];
  slot.begun_ns.value.store(0, std::memory_order_release);
  store_id(actor, slot.actor_high, slot.actor_low);
  slot.method.set(method);
  slot.tid.set(thread_id());
  slot.begun_ns.value.store(now_ns, std::memory_order_release);
}

void ActivityPage::end_call(ClassRef of_class, std::uint64_t begun_ns, std::uint64_t now_ns,
                            bool failed) {
  const std::size_t at = place();
  if (at == kNowhere) return;
  layout_->running[at].begun_ns.value.store(0, std::memory_order_release);
  ClassCounts& counts = layout_->counts[at][of_class.index];
  const std::uint64_t took = now_ns - begun_ns;
  counts.calls.add(1);
  if (failed) counts.failed.add(1);
  counts.sum_ns.add(took);
  counts.buckets[bucket_of(took)].add(1);
}

void ActivityPage::end_running() {
  if (const std::size_t at = place(); at != kNowhere)
    layout_->running[at].begun_ns.value.store(0, std::memory_order_release);
}

std::uint64_t call_flow(std::uint64_t session, const ActorId& actor, std::uint64_t sequence) {
  std::uint64_t half;
  std::memcpy(&half, actor.bytes.data(), sizeof half);
  return session ^ (half * 0x9E3779B97F4A7C15ull) ^ (sequence * 0xC2B2AE3D27D4EB4Full);
}

}  // namespace runtime
