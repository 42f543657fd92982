// ActorGroup<T>: actors called as one.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/actor/actor_handle.h"

namespace runtime {

/// One part per member of a group, in order of rank: `group.call(&Worker::step, split(shards), learning_rate)`. The parts may be ObjectRefs.
template <class V>
struct Split {
  std::vector<V> parts;
};
template <class V>
Split<V> split(std::vector<V> parts) {
  return {std::move(parts)};
}

namespace group_detail {

template <class A>
const A& pick(const A& argument, std::size_t) {
  return argument;
}
template <class V>
const V& pick(const Split<V>& argument, std::size_t rank) {
  return argument.parts[rank];
}

template <class A>
bool has_size(const A&, std::size_t) {
  return true;
}
template <class V>
bool has_size(const Split<V>& argument, std::size_t size) {
  return argument.parts.size() == size;
}

/// The type a member gets of an argument.
template <class A>
struct Part {
  using type = A;
};
template <class V>
struct Part<Split<V>> {
  using type = V;
};

/// A failed reference: split() with other than one part per member.
ObjectStatePtr wrong_split(std::size_t group_size);

}  // namespace group_detail

/// A copyable, serialisable list of handles; the position in it is the member's rank.
template <class T>
class ActorGroup {
 public:
  ActorGroup() = default;
  explicit ActorGroup(std::vector<ActorHandle<T>> members) : members_(std::move(members)) {}

  std::size_t size() const { return members_.size(); }
  bool empty() const { return members_.empty(); }
  const ActorHandle<T>& operator[](std::size_t rank) const { return members_[rank]; }
  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }

  /// Calls the method on every member, without waiting in between: one result per rank, for Runtime::gather or wait. An argument
  /// goes to all, unless it is split(): then each member gets its part. A split of another size than the group fails all calls with kInvalidArgument.
  template <class M, class... Args>
  auto call(M method, const Args&... args) const {
    return call(CallOptions{}, method, args...);
  }

  template <class M, class... Args>
  auto call(const CallOptions& options, M method, const Args&... args) const {
    std::vector<ObjectRef<typename MethodTraits<M>::Value>> results;
    results.reserve(size());
    const bool fits = (group_detail::has_size(args, size()) && ...);
    for (std::size_t rank = 0; rank < size(); ++rank) {
      if (fits) results.push_back(members_[rank].call(options, method, group_detail::pick(args, rank)...));
      else results.emplace_back(group_detail::wrong_split(size()));
    }
    return results;
  }

  /// Members [first, first + count), with ranks from 0 again. The range must lie in the group.
  ActorGroup slice(std::size_t first, std::size_t count) const {
    CHECK(first <= size() && count <= size() - first);
    auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    return ActorGroup({begin, begin + static_cast<std::ptrdiff_t>(count)});
  }

  auto fields() { return std::tie(members_); }

 private:
  std::vector<ActorHandle<T>> members_;
};

}  // namespace runtime
