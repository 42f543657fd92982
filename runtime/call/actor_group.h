// ActorGroup<T>: actors called as one.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/call/actor_handle.h"

namespace runtime {

/// One part per member of a group, in order of rank: `group.call(&Worker::step, split(shards),
/// learning_rate)`. The parts may be ObjectRefs.
template <class V>
struct Split {
  std::vector<V> parts;
};
template <class V>
Split<V> split(std::vector<V> parts) {
  return {std::move(parts)};
}

/// An argument made for each member: `group.call(&Worker::step, by_rank([&](std::size_t rank) {
/// return shard_of(batch, rank, size); }))`. The function may return an ObjectRef.
template <class Make>
struct ByRank {
  Make make;
};
template <class Make>
ByRank<Make> by_rank(Make make) {
  return {std::move(make)};
}

/// Contiguous parts of nearly equal size, one per member, the first ones longer by one where it
/// does not divide evenly.
template <class V>
Split<std::vector<V>> split_evenly(const std::vector<V>& values, std::size_t parts) {
  Split<std::vector<V>> result;
  auto at = values.begin();
  for (std::size_t rank = 0; rank < parts; ++rank) {
    const std::size_t count = values.size() / parts + (rank < values.size() % parts ? 1 : 0);
    result.parts.emplace_back(at, at + static_cast<std::ptrdiff_t>(count));
    at += static_cast<std::ptrdiff_t>(count);
  }
  return result;
}

/// The reverse, for ObjectApi::collect: the elements of all parts in order of rank.
template <class V>
std::vector<V> concatenate(std::vector<std::vector<V>> parts) {
  std::vector<V> all;
  for (auto& part : parts)
    all.insert(all.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
  return all;
}

namespace group_detail {

template <class A>
const A& pick(const A& argument, std::size_t) {
  return argument;
}
template <class Make>
auto pick(const ByRank<Make>& argument, std::size_t rank) {
  return argument.make(rank);
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

/// Whether members get different values of it.
template <class A>
inline constexpr bool kDiffers = false;
template <class V>
inline constexpr bool kDiffers<Split<V>> = true;
template <class Make>
inline constexpr bool kDiffers<ByRank<Make>> = true;

/// The clients of a group whose handles all refer to actors and give calls the same time; else
/// none.
template <class T>
std::vector<ActorClient*> clients_of(const std::vector<ActorHandle<T>>& members) {
  std::vector<ActorClient*> clients;
  for (const auto& member : members) {
    if (!member.is_valid() || member.call_timeout() != members.front().call_timeout() ||
        member.defaults().max_task_retries != members.front().defaults().max_task_retries) {
      return {};
    }
    clients.push_back(member.client().get());
  }
  return clients;
}

/// As ActorClient::call_all().
std::vector<ObjectStatePtr> start_calls(const std::vector<ActorClient*>& clients,
                                        std::type_index type, const MethodKey& method,
                                        Encoder& arguments, std::chrono::milliseconds timeout,
                                        std::int32_t retries);

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

  /// Calls the method on every member, without waiting in between: one result per rank, for
  /// ObjectApi::gather, collect, as_completed or Runtime::wait. An argument goes to all, unless it
  /// is split() or by_rank(): then each member gets its own. Arguments that are the same for all
  /// are encoded once, and large ones stored once. A split of another size than the group fails all
  /// calls with kInvalidArgument. All calls have the same deadline.
  template <class M, class... Args>
  auto call(M method, const Args&... args) const {
    return call(CallOptions{}, method, args...);
  }

  template <class M, class... Args>
  auto call(const CallOptions& options, M method, const Args&... args) const {
    using Traits = MethodTraits<M>;
    static_assert(std::is_base_of_v<typename Traits::Class, T>, "not a method of these actors");
    static_assert(
        !Traits::kIsStream,
        "call a method that yields values on each member: for (const auto& member : group) ...");
    std::vector<ObjectRef<typename Traits::Value>> results;
    results.reserve(size());
    if constexpr (!(group_detail::kDiffers<Args> || ...)) {
      if (auto clients = group_detail::clients_of(members_); !clients.empty()) {
        auto timeout = options.timeout_or(members_.front().call_timeout());
        auto retries =
            options.max_task_retries.value_or(members_.front().defaults().max_task_retries);
        with_arguments<typename Traits::Params>(
            [&](Encoder& encoder) {
              for (auto& state : group_detail::start_calls(
                       clients, typeid(T), MethodKey::of(method), encoder, timeout, retries)) {
                results.emplace_back(std::move(state));
              }
            },
            args...);
        return results;
      }
    }
    const bool fits = (group_detail::has_size(args, size()) && ...);
    for (std::size_t rank = 0; rank < size(); ++rank) {
      if (fits)
        results.push_back(members_[rank].call(options, method, group_detail::pick(args, rank)...));
      else
        results.emplace_back(group_detail::wrong_split(size()));
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
