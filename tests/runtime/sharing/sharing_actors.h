// Actors that make objects, hold them and pass them on. The test program is its own driver and
// worker.
#pragma once

#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/coroutine.h"
#include "runtime/runtime.h"
#include "tests/support/pauses.h"

namespace runtime::test {

using Numbers = std::vector<std::uint64_t>;

/// `count` numbers that only this seed gives.
inline Numbers numbers(std::uint64_t seed, std::size_t count) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = seed * 1'000'003 + i;
  return values;
}
inline bool is_from(std::uint64_t seed, const ArrayView<std::uint64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != seed * 1'000'003 + i) return false;
  }
  return true;
}

/// A reference and what its object must hold.
struct Known {
  std::uint64_t seed = 0;
  ObjectRef<Numbers> ref;
  auto fields() { return std::tie(seed, ref); }
};

/// References in every kind of place.
struct Parcel {
  std::vector<Known> list;
  std::map<std::string, Known> named;
  ObjectRef<std::vector<Known>> boxed;  // an object that contains references
  auto fields() { return std::tie(list, named, boxed); }
};

/// Arrays that are not its own.
struct Batch {
  int step = 0;
  std::string_view title;
  std::span<const std::int64_t> ids;
  std::span<const double> none;
  std::span<const float> mask;
  auto fields() { return std::tie(step, title, ids, none, mask); }
};

class Keeper {
 public:
  explicit Keeper(Runtime& runtime) : runtime_(runtime) {}

  int pid() const { return ::getpid(); }
  Result<Known> make(std::uint64_t seed, std::uint64_t count) {
    auto ref = runtime_.put(numbers(seed, count));
    if (!ref.ok()) return ref.status();
    return Known{seed, *ref};
  }
  /// The object itself is the result.
  Numbers produce(std::uint64_t seed, std::uint64_t count) { return numbers(seed, count); }
  void keep(Parcel parcel) {
    for (Known& known : parcel.list) kept_.push_back(std::move(known));
    for (auto& [name, known] : parcel.named) kept_.push_back(std::move(known));
    if (parcel.boxed.is_valid()) boxes_.push_back(std::move(parcel.boxed));
  }
  std::vector<Known> kept() const { return kept_; }
  /// Gives what it keeps to another one.
  Status hand_on(ActorHandle<Keeper> other) {
    Parcel parcel;
    parcel.list = kept_;
    if (!boxes_.empty()) parcel.boxed = boxes_.back();
    return runtime_.get(other.call(&Keeper::keep, parcel));
  }
  void drop(std::uint64_t which) {
    if (!kept_.empty())
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(which % kept_.size()));
    if (which % 3 == 0 && !boxes_.empty()) boxes_.pop_back();
  }
  void drop_all() {
    kept_.clear();
    boxes_.clear();
    views_.clear();
  }
  /// Reads all: how many were there with the right values; the failures' messages.
  std::vector<std::string> read_all() {
    std::vector<std::string> failures;
    std::vector<Known> all = kept_;
    for (const auto& box : boxes_) {
      auto inside = runtime_.get(box, std::chrono::seconds(30));
      if (!inside.ok())
        failures.push_back(inside.status().to_string());
      else
        all.insert(all.end(), inside->begin(), inside->end());
    }
    for (const Known& known : all) {
      auto view = runtime_.objects().view(known.ref, std::chrono::seconds(30));
      if (!view.ok())
        failures.push_back(std::to_string(known.seed) + ": " + view.status().to_string());
      else if (!is_from(known.seed, *view))
        failures.push_back(std::to_string(known.seed) + ": wrong value");
    }
    return failures;
  }
  Result<std::uint64_t> first_of(ObjectRef<Numbers> ref) {
    auto view = runtime_.objects().view(ref, std::chrono::seconds(30));
    if (!view.ok()) return view.status();
    return (*view)[0];
  }
  double weigh(Batch batch) {
    double sum = 0;
    for (std::size_t i = 0; i < batch.ids.size(); ++i)
      sum += static_cast<double>(batch.ids[i]) * static_cast<double>(batch.mask[i]);
    return sum;
  }
  Status publish(const std::string& name, std::uint64_t version, std::uint64_t count) {
    auto ref = runtime_.put(numbers(version, count));
    if (!ref.ok()) return ref.status();
    return runtime_.published().publish(name, version, *ref);
  }
  Result<std::uint64_t> latest(const std::string& name) {
    auto found = runtime_.published().latest<Numbers>(name);
    if (!found.ok()) return found.status();
    auto view = runtime_.objects().view(found->ref, std::chrono::seconds(30));
    if (!view.ok()) return view.status();
    return is_from(found->version, *view) ? Result<std::uint64_t>(found->version)
                                          : internal_error("wrong value");
  }
  /// A reference to the latest version, which read_all() reads.
  Status hold_latest(const std::string& name) {
    auto found = runtime_.published().latest<Numbers>(name);
    if (!found.ok()) return found.status();
    kept_.push_back({found->version, found->ref});
    return {};
  }
  Result<std::uint64_t> view_and_hold(const std::string& name) {
    auto found = runtime_.published().latest<Numbers>(name);
    if (!found.ok()) return found.status();
    auto view = runtime_.objects().view(found->ref, std::chrono::seconds(30));
    if (!view.ok()) return view.status();
    views_.push_back(*view);
    return found->version;
  }
  bool held_is_from(std::uint64_t seed) const {
    return !views_.empty() && is_from(seed, views_.back());
  }

 private:
  Runtime& runtime_;
  std::vector<Known> kept_;
  std::vector<ObjectRef<std::vector<Known>>> boxes_;
  std::vector<ArrayView<std::uint64_t>> views_;
};

/// Awaits what it reads.
class Waiter {
 public:
  explicit Waiter(Runtime& runtime) : runtime_(runtime) {}
  asio::awaitable<Result<std::uint64_t>> first_of(std::vector<ObjectRef<Numbers>> refs) {
    auto waiting = runtime_.async_get(refs[0], std::chrono::seconds(30));
    Result<Numbers> values = co_await std::move(waiting);
    if (!values.ok()) {
      Result<std::uint64_t> failed = values.status();
      co_return failed;
    }
    Result<std::uint64_t> first = (*values)[0];
    co_return first;
  }
  asio::awaitable<std::uint64_t> count(Numbers numbers) {
    counted_ += numbers.size();
    co_return counted_;
  }
  std::uint64_t counted() const { return counted_; }
  asio::awaitable<Result<int>> answer() {
    Result<int> result = 42;
    co_return result;
  }

 private:
  Runtime& runtime_;
  std::uint64_t counted_ = 0;
};

/// Calls a Waiter twice, first with many numbers (as a group's member, so that they are left in the
/// store), then with one.
class Sender {
 public:
  explicit Sender(Runtime& runtime) : runtime_(runtime) {}
  Result<std::vector<std::uint64_t>> send(ActorHandle<Waiter> to, std::uint64_t count) {
    ActorGroup<Waiter> group({to});
    return runtime_.objects().gather(std::vector{group.call(&Waiter::count, numbers(1, count))[0],
                                                 to.call(&Waiter::count, numbers(1, 1))},
                                     std::chrono::seconds(30));
  }

 private:
  Runtime& runtime_;
};

/// Grows until it is stopped.
class Glutton {
 public:
  int pid() const { return ::getpid(); }
  void eat(std::uint64_t bytes) {
    std::vector<char> meal(bytes, 'x');
    meals_.push_back(std::move(meal));
  }
  /// In one call, which is under way when the node runs short.
  void gorge(std::uint64_t bytes, int meals) {
    for (; meals > 0; --meals) {
      eat(bytes);
      support::work_for(std::chrono::milliseconds(100));
    }
  }

 private:
  std::vector<std::vector<char>> meals_;
};

inline void register_sharing_actors(Runtime& rt) {
  rt.register_actor<Waiter>("Waiter", &Waiter::first_of, &Waiter::answer, &Waiter::count,
                            &Waiter::counted);
  rt.register_actor<Sender>("Sender", &Sender::send);
  rt.register_actor<Glutton>("Glutton", &Glutton::pid, &Glutton::eat, &Glutton::gorge);
  rt.register_actor<Keeper>("Keeper", &Keeper::pid, &Keeper::make, &Keeper::produce, &Keeper::keep,
                            &Keeper::kept, &Keeper::hand_on, &Keeper::drop, &Keeper::drop_all,
                            &Keeper::read_all, &Keeper::first_of, &Keeper::weigh, &Keeper::publish,
                            &Keeper::latest, &Keeper::view_and_hold, &Keeper::hold_latest,
                            &Keeper::held_is_from);
}

}  // namespace runtime::test
