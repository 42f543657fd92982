// Actors and tasks for the tests of nodes that leave.
#pragma once

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/runtime.h"
#include "tests/support/eventually.h"
#include "tests/support/pauses.h"

namespace runtime::test {

/// Counts, and takes its count along.
class Keeper {
 public:
  struct State {
    std::int64_t total = 0;
    std::vector<std::string> drains;  // the reasons that on_drain() has heard
    auto fields() { return std::tie(total, drains); }
  };

  explicit Keeper(Runtime& runtime) : runtime_(runtime) {}
  State save_state() const { return state_; }
  void restore_state(State saved) { state_ = std::move(saved); }
  void on_drain(const DrainNotice& notice) {
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(notice.deadline - std::chrono::steady_clock::now())
            .count();
    state_.drains.push_back(notice.reason + " " + std::to_string(left));
  }

  std::int64_t add(int n) { return state_.total += n; }
  std::int64_t total() const { return state_.total; }
  std::vector<std::string> drains() const { return state_.drains; }
  int pid() const { return ::getpid(); }
  std::string node() const { return runtime_.cluster().node_id().hex(); }
  /// Large enough for the store.
  std::vector<float> make(std::uint64_t count, float value) const {
    return std::vector<float>(count, value);
  }
  Result<ObjectRef<std::vector<float>>> put(std::uint64_t count, float value) {
    return runtime_.put(std::vector<float>(count, value));
  }
  /// Keeps a reference that another actor made.
  void hold(ObjectRef<std::vector<float>> numbers) { held_ = std::move(numbers); }
  Result<float> first_of_held() {
    auto numbers = runtime_.get(held_, std::chrono::seconds(20));
    if (!numbers.ok()) return numbers.status();
    return numbers->at(0);
  }
  /// Ends when it learns that its node leaves; says why that is.
  std::string work_until_drained() {
    std::optional<DrainNotice> notice;
    (void)support::eventually(
        [&] { return (notice = runtime_.cluster().drain_notice()).has_value(); },
        std::chrono::seconds(30));
    return notice ? notice->reason : "";
  }
  void work(int ms) const { support::work_for(std::chrono::milliseconds(ms)); }
  /// Makes the file when it begins.
  void note_and_work(std::string file, int ms) const {
    std::ofstream(file) << ::getpid() << "\n";
    work(ms);
  }

 private:
  Runtime& runtime_;
  State state_;
  ObjectRef<std::vector<float>> held_;
};

/// Cannot come back.
class Mortal {
 public:
  void on_drain(const DrainNotice& notice) { heard_ = notice.reason; }
  int add(int n) { return total_ += n; }
  std::string heard() const { return heard_; }

 private:
  int total_ = 0;
  std::string heard_;
};

/// Is made with a reference, each time that it is started.
class Reader {
 public:
  Reader(Runtime& runtime, ObjectRef<std::vector<float>> numbers)
      : runtime_(runtime), numbers_(std::move(numbers)) {}
  Result<float> first() {
    auto numbers = runtime_.get(numbers_, std::chrono::seconds(20));
    if (!numbers.ok()) return numbers.status();
    return numbers->at(0);
  }

 private:
  Runtime& runtime_;
  ObjectRef<std::vector<float>> numbers_;
};

/// A task that leaves a line for each run.
inline std::vector<float> note_and_fill(std::string file, std::uint64_t count, float value) {
  std::ofstream(file, std::ios::app) << ::getpid() << "\n";
  return std::vector<float>(count, value);
}
inline int slow_task(std::string file, int ms) {
  std::ofstream(file, std::ios::app) << ::getpid() << "\n";
  support::work_for(std::chrono::milliseconds(ms));
  return ::getpid();
}

inline void register_drain_actors(Runtime& rt) {
  rt.register_actor<Keeper>("Keeper", &Keeper::add, &Keeper::total, &Keeper::drains, &Keeper::pid,
                            &Keeper::node, &Keeper::make, &Keeper::put, &Keeper::hold,
                            &Keeper::first_of_held, &Keeper::work_until_drained, &Keeper::work,
                            &Keeper::note_and_work);
  rt.register_actor<Mortal>("Mortal", &Mortal::add, &Mortal::heard);
  rt.register_actor<Reader>("Reader", &Reader::first);
  rt.register_function("note_and_fill", &note_and_fill);
  rt.register_function("slow_task", &slow_task);
}

}  // namespace runtime::test
