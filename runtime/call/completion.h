// Completions<T>: results in the order in which they come. What ObjectApi::as_completed returns.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/call/object_ref.h"

namespace runtime {

class CompletionQueue;

/// One of the objects given to as_completed, settled: get() returns at once with its value or
/// failure.
template <class T>
struct Completed {
  std::size_t index = 0;  // its position among those given
  ObjectRef<T> ref;
};

namespace completion_detail {
/// CompletionQueue for headers that do without the event loop.
std::shared_ptr<CompletionQueue> watch(std::vector<ObjectStatePtr> objects);
std::optional<std::size_t> next(CompletionQueue& queue, Deadline deadline);
/// An object that settles with them: see ObjectApi::when_all. None of `objects` is null.
ObjectStatePtr when_all(ObjectContextPtr context, const std::vector<ObjectStatePtr>& objects);
}  // namespace completion_detail

/// An input range that blocks in begin() and ++ until the next object settles. It ends when all
/// have come, or at the deadline: then remaining() says how many are missing. Lets go of each
/// object as it hands it out. For one thread; movable.
///
///   for (const auto& [index, ref] : rt.objects().as_completed(refs, 10s)) { auto value =
///   rt.get(ref); ... }
template <class T>
class Completions {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Completed<T>;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(Completions* range) : range_(range), at_(range->next()) {}
    const Completed<T>& operator*() const { return *at_; }
    const Completed<T>* operator->() const { return &*at_; }
    Iterator& operator++() {
      at_ = range_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !at_.has_value(); }

   private:
    Completions* range_ = nullptr;
    std::optional<Completed<T>> at_;
  };

  /// Refs that refer to nothing are handed out first: getting them fails with kInvalidArgument.
  Completions(std::vector<ObjectRef<T>> refs, Deadline deadline)
      : refs_(std::move(refs)), deadline_(deadline), remaining_(refs_.size()) {
    std::vector<ObjectStatePtr> objects;
    for (std::size_t i = 0; i < refs_.size(); ++i) {
      (refs_[i].is_valid() ? watched_ : invalid_).push_back(i);
      if (refs_[i].is_valid()) objects.push_back(refs_[i].state());
    }
    queue_ = completion_detail::watch(std::move(objects));
  }
  Completions(Completions&&) noexcept = default;
  Completions& operator=(Completions&&) noexcept = default;

  /// The next to settle; nothing at the deadline and at the end.
  std::optional<Completed<T>> next() {
    std::size_t index = 0;
    if (!invalid_.empty()) {
      index = invalid_.back();
      invalid_.pop_back();
    } else if (auto position = completion_detail::next(*queue_, deadline_)) {
      index = watched_[*position];
    } else {
      return std::nullopt;
    }
    --remaining_;
    return Completed<T>{index, std::exchange(refs_[index], {})};
  }
  /// How many have not been handed out.
  std::size_t remaining() const { return remaining_; }

  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::vector<ObjectRef<T>> refs_;
  Deadline deadline_;
  std::size_t remaining_;
  std::vector<std::size_t> watched_;  // by position in the queue
  std::vector<std::size_t> invalid_;
  std::shared_ptr<CompletionQueue> queue_;
};

}  // namespace runtime
