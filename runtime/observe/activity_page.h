// ActivityPage: the side of activity_layout.h that writes. One per process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/observe/activity_layout.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Nanoseconds of the steady clock.
std::uint64_t activity_now();

/// Any thread. Pages are touched as they are used: an idle worker has half a dozen.
class ActivityPage : public std::enable_shared_from_this<ActivityPage> {
 public:
  /// Errors: kResourceExhausted.
  static Result<std::shared_ptr<ActivityPage>> create();
  ActivityPage(const ActivityPage&) = delete;
  ActivityPage& operator=(const ActivityPage&) = delete;
  ~ActivityPage();

  /// For the node. Errors: kResourceExhausted.
  Result<FileDescriptor> duplicate() const;
  activity::Layout& layout() { return *layout_; }

  /// Where a class's numbers go. Its methods are numbered after the constructor, in the order
  /// given.
  struct ClassRef {
    std::uint32_t index = 0;
    std::uint32_t constructor = 0;
    std::uint32_t method(std::size_t i) const {
      return constructor == 0 ? 0 : constructor + 1 + static_cast<std::uint32_t>(i);
    }
  };
  ClassRef class_of(const std::string& name, std::span<const std::string> methods);
  /// The same for an ActorClass, whose methods are only looked at the first time.
  template <class Class>
  ClassRef class_of(const Class& of_class) {
    if (auto known = find_class(of_class.name())) return *known;
    std::vector<std::string> names;
    for (const auto& method : of_class.methods()) names.push_back(method.name);
    return class_of(of_class.name(), names);
  }

  /// Null when all are taken. give_back() it.
  activity::ActorSlot* take_actor(const ActorId& actor, ClassRef of_class);
  void give_back(activity::ActorSlot* slot);

  /// Whether single calls are being recorded. Cost: a load.
  bool records(std::uint64_t now_ns) const {
    return layout_->record_until_ns.load(std::memory_order_relaxed) > now_ns;
  }
  void record(activity::TraceEvent event);

  /// The calling thread runs this method from now on; until end_call(), which returns how long that
  /// was.
  void begin_call(const ActorId& actor, std::uint32_t method, std::uint64_t now_ns);
  void end_call(ClassRef of_class, std::uint64_t begun_ns, std::uint64_t now_ns, bool failed);
  /// It runs nothing any more; for what is not counted.
  void end_running();
  /// The calling thread's number, as the system has it.
  static std::uint32_t thread_id();

 private:
  struct ThreadPlace;
  std::optional<ClassRef> find_class(const std::string& name);
  explicit ActivityPage(FileDescriptor fd, activity::Layout* layout)
      : fd_(std::move(fd)), layout_(layout) {}
  std::size_t place();

  static std::uint64_t next_serial();

  const std::uint64_t serial_ =
      next_serial();  // tells it from one that was at the same address before
  const FileDescriptor fd_;
  activity::Layout* const layout_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, ClassRef> classes_;
  std::vector<std::uint32_t> free_actors_;
  std::vector<std::size_t> free_threads_;
};

/// The id of a call's flow, which both sides of the call compute alike.
std::uint64_t call_flow(std::uint64_t session, const ActorId& actor, std::uint64_t sequence);

}  // namespace runtime
