// WorkerGroup: the workers of one role, placed over the nodes and called as one.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rl/actor/actors.h"
#include "rl/actor/group_watch.h"
#include "rl/actor/worker_slots.h"
#include "runtime/runtime.h"

namespace rl {

/// Files that were written, relative to a folder, as text.
using WrittenFiles = runtime::Result<std::vector<std::string>>;
/// Begins to write what a group had to save into a folder, once; the function that it returns waits
/// for the files. Any thread.
using WriteState =
    std::function<std::function<WrittenFiles()>(const std::filesystem::path& folder)>;

/// Actors of class T, one per slot; WorkerSlots::slot_of() says which rank has which. Calls go to
/// all members at once and return references in rank order; arguments that differ by rank are given
/// with runtime::split(). Copyable: it holds handles only.
template <class T>
class WorkerGroup {
 public:
  WorkerGroup() = default;

  /// Makes the group. `spec` is completed with rank, size and threads. With `reserves` each member
  /// takes its slot's CPUs, else it shares them with the role that does. Errors: what T::create
  /// returned, with the rank; those of Runtime::spawn_group.
  static runtime::Result<WorkerGroup> spawn(runtime::Runtime& runtime, const WorkerSlots& slots,
                                            bool reserves, WorkerSpec spec) {
    std::vector<runtime::ActorOptions> options;
    std::vector<WorkerSpec> specs;
    spec.size = static_cast<std::int32_t>(slots.size());
    spec.threads = slots.threads();
    spec.device = slots.device;
    for (std::int64_t rank = 0; rank < slots.size(); ++rank) {
      runtime::ActorOptions member;
      member.cpus = reserves ? slots.cpus : 0.0;
      member.gpus = slots.gpu_share();
      member.threads = static_cast<std::uint32_t>(slots.threads());
      member.bundle = runtime::BundleSlot{slots.group, slots.bundle_of(rank)};
      member.env = worker_environment(slots);
      if constexpr (requires { &T::write_snapshot; })
        member.concurrency_groups = {{kSavingCalls, 1}};
      member.concurrency_groups[kWatchCalls] = 1;
      options.push_back(std::move(member));
      spec.rank = static_cast<std::int32_t>(rank);
      specs.push_back(spec);
    }
    auto group = runtime.spawn_group<T>(options, runtime::split(std::move(specs)));
    if (!group.ok())
      return group.status().with_context(std::string("starting the ") + T::kName + " workers");
    WorkerGroup started(runtime, std::move(*group), slots.rank_timeout);
    started.run_folder_ = spec.run_folder;
    if (const runtime::Status asked = started.ask_limits(); !asked.ok()) return asked;
    return started;
  }

  std::size_t size() const { return actors_.size(); }
  const runtime::ActorHandle<T>& member(std::size_t rank) const { return actors_[rank]; }
  bool empty() const { return actors_.empty(); }

  /// By rank: what one pass may take, as its member said when it started; members are not
  /// restarted. Empty where they do not say.
  const std::vector<PassLimits>& pass_limits() const { return pass_limits_; }

  /// Starts the method on every member and returns at once: one reference a rank, to pass on or to
  /// fetch().
  template <class M, class... Args>
  auto call(M method, const Args&... args) const {
    return actors_.call(method, args...);
  }

  /// Calls and waits for all: the results by rank, or the first failure with its rank. Where a
  /// member died and the others only noticed that it was gone, the death is the failure. Members
  /// are watched meanwhile: see watch_group().
  template <class M, class... Args>
  auto fetch(M method, const Args&... args) const {
    return gather(actors_.call(method, args...));
  }

  /// The same of calls that were made by call().
  template <class R>
  auto gather(const std::vector<runtime::ObjectRef<R>>& refs) const {
    const runtime::Status watched = watch(refs);
    using Results = decltype(runtime_->objects().gather(refs));
    if (!watched.ok()) return Results(watched);
    Results results = runtime_->objects().gather(refs);
    if constexpr (std::is_same_v<Results, runtime::Status>) {
      return results.ok() ? results : root_cause(results, refs);
    } else {
      return results.ok() ? results : decltype(results)(root_cause(results.status(), refs));
    }
  }

  /// The member of rank 0: what needs to be done once is done there.
  const runtime::ActorHandle<T>& leader() const { return actors_[0]; }

  /// What the group has to save now, to be written into a folder below WorkerSpec::run_folder. With
  /// `async`: during the calls that follow, from a copy that is taken here. Else without one in
  /// the line of a member's calls, before the next of them. Members that keep it once together
  /// write their parts, if all see the run's folder; else the leader writes. Errors: those of
  /// Runtime::get, of writing with the rank.
  runtime::Result<WriteState> state(bool async) const {
    const auto in_parts = fetch(&T::begin_save, run_folder_);
    if (!in_parts.ok()) return in_parts.status();
    return state_of(in_parts->front() ? size() : 1, async);
  }

  /// The same without a copy, by the leader alone, into any folder.
  runtime::Result<WriteState> leaders_state() const {
    const runtime::Status collected = fetch(&T::collect_state);
    if (!collected.ok()) return collected;
    return state_of(1, /*async=*/false);
  }

  /// Ends the members.
  runtime::Status kill() {
    if (actors_.empty()) return {};
    return runtime_->kill(std::exchange(actors_, {}));
  }

 private:
  WorkerGroup(runtime::Runtime& runtime, runtime::ActorGroup<T> actors,
              std::chrono::milliseconds rank_timeout)
      : runtime_(&runtime), actors_(std::move(actors)), rank_timeout_(rank_timeout) {}

  // The first `writers` members write.
  runtime::Result<WriteState> state_of(std::size_t writers, bool async) const {
    std::vector<runtime::ActorHandle<T>> members;
    for (std::size_t rank = 0; rank < writers; ++rank) members.push_back(actors_[rank]);
    std::vector<runtime::ObjectRef<void>> copies;
    for (const auto& member : members)
      if (async) copies.push_back(member.call(&T::take_snapshot));
    if (const runtime::Status copied = runtime_->objects().gather(copies); !copied.ok())
      return copied;
    const auto write = async ? &T::write_snapshot : &T::save;
    return WriteState([runtime = runtime_, members, write](const std::filesystem::path& folder) {
      std::vector<runtime::ObjectRef<std::vector<std::string>>> files;
      for (const auto& member : members) files.push_back(member.call(write, folder.string()));
      return std::function<WrittenFiles()>([runtime, files] { return wait_all(*runtime, files); });
    });
  }

  // Also after a failure: no member writes any more when it returns.
  static WrittenFiles wait_all(
      runtime::Runtime& runtime,
      const std::vector<runtime::ObjectRef<std::vector<std::string>>>& parts) {
    std::vector<std::string> all;
    runtime::Status failure;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const WrittenFiles files = runtime.get(parts[rank]);
      if (files.ok())
        all.insert(all.end(), files->begin(), files->end());
      else if (failure.ok())
        failure = parts.size() == 1 ? files.status()
                                    : files.status().with_context(std::string(T::kName) +
                                                                  ", rank " + std::to_string(rank));
    }
    if (!failure.ok()) return failure;
    return all;
  }

  template <class R>
  runtime::Status watch(const std::vector<runtime::ObjectRef<R>>& refs) const {
    return watch_group(watched_call(refs), rank_timeout_, kRankTimeoutKey);
  }

  template <class R>
  GroupCall watched_call(const std::vector<runtime::ObjectRef<R>>& refs) const {
    const auto all = runtime_->objects().when_all(refs);
    return {
        .role = T::kName,
        .ranks = size(),
        .wait =
            [this, all](std::chrono::milliseconds limit) {
              return runtime_->wait(std::vector{all}, 1, limit).pending.empty();
            },
        .finished =
            [this, &refs] {
              std::vector<bool> finished;
              for (const auto& ref : refs)
                finished.push_back(runtime_->wait(std::vector{ref}, 1, std::chrono::milliseconds(0))
                                       .pending.empty());
              return finished;
            },
        .ask = [this](const std::vector<bool>& asked,
                      std::chrono::milliseconds limit) { return pulses(asked, limit); },
        .abort =
            [this](const std::string& why) {
              if constexpr (requires { &T::give_up; })
                (void)runtime_->wait(actors_.call(&T::give_up, why), size(), kGivingUp);
            }};
  }

  std::vector<std::optional<Pulse>> pulses(const std::vector<bool>& asked,
                                           std::chrono::milliseconds limit) const {
    const runtime::Deadline deadline = runtime::deadline_after(limit);
    std::vector<std::optional<runtime::ObjectRef<Pulse>>> refs(size());
    for (std::size_t rank = 0; rank < size(); ++rank)
      if (asked[rank])
        refs[rank] = actors_[rank].call(runtime::CallOptions{.timeout = limit}, &T::pulse);
    std::vector<std::optional<Pulse>> pulses(size());
    for (std::size_t rank = 0; rank < size(); ++rank) {
      if (!refs[rank]) continue;
      runtime::Result<Pulse> pulse = runtime_->get(*refs[rank], deadline);
      if (pulse.ok()) pulses[rank] = std::move(*pulse);
    }
    return pulses;
  }

  runtime::Status ask_limits() {
    if constexpr (requires { &T::pass_limits; }) {
      runtime::Result<std::vector<PassLimits>> limits = fetch(&T::pass_limits);
      if (!limits.ok()) return limits.status();
      pass_limits_ = std::move(*limits);
    }
    return {};
  }

  // What others have failed for.
  static bool is_of_another(const runtime::Status& status) {
    return status.code() == runtime::ErrorCode::kUnavailable ||
           status.code() == runtime::ErrorCode::kDeadlineExceeded;
  }

  // Collectives fail on every member when one fails or dies, and that may be told last.
  template <class R>
  runtime::Status root_cause(const runtime::Status& first,
                             const std::vector<runtime::ObjectRef<R>>& refs) const {
    if (!is_of_another(first)) return first;
    (void)runtime_->wait(refs, refs.size(), kDeathNotice);
    runtime::Status cause = first;
    for (std::size_t rank = 0; rank < refs.size(); ++rank) {
      if (runtime_->wait(std::vector{refs[rank]}, 1, std::chrono::milliseconds(0)).ready.empty())
        continue;
      const runtime::Status status = status_of(*runtime_, refs[rank]);
      if (status.code() == runtime::ErrorCode::kActorDied) return status;
      if (!status.ok() && is_of_another(cause) && !is_of_another(status))
        cause = status.with_context(std::string(T::kName) + ", rank " + std::to_string(rank));
    }
    return cause;
  }

  template <class R>
  static runtime::Status status_of(runtime::Runtime& runtime, const runtime::ObjectRef<R>& ref) {
    if constexpr (std::is_void_v<R>) {
      return runtime.get(ref);
    } else {
      return runtime.get(ref).status();
    }
  }

  static constexpr std::chrono::seconds kDeathNotice{3};  // a death is known within a second
  static constexpr std::chrono::seconds kGivingUp{2};     // of ranks that answer

  runtime::Runtime* runtime_ = nullptr;
  runtime::ActorGroup<T> actors_;
  std::chrono::milliseconds rank_timeout_{};
  std::string run_folder_;
  std::vector<PassLimits> pass_limits_;
};

}  // namespace rl
