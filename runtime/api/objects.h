// ObjectApi: several objects at once, values in place, and what the cluster holds of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/api/connection.h"
#include "runtime/api/until.h"
#include "runtime/call/actor_handle.h"
#include "runtime/call/completion.h"
#include "runtime/call/get.h"
#include "runtime/call/object_ref.h"
#include "runtime/call/object_view.h"
#include "runtime/control/object_info.h"

namespace runtime {

namespace runtime_detail {

template <class T>
std::vector<ObjectStatePtr> states_of(const std::vector<ObjectRef<T>>& refs) {
  std::vector<ObjectStatePtr> states;
  states.reserve(refs.size());
  for (const auto& ref : refs) states.push_back(ref.state());
  return states;
}

template <class R>
inline constexpr bool kIsResult = false;
template <class R>
inline constexpr bool kIsResult<Result<R>> = true;

}  // namespace runtime_detail

/// Runtime::objects(). A value that borrows the Runtime.
class ObjectApi {
 public:
  explicit ObjectApi(const Connection& connection) : connection_(connection) {}

  /// Waits for an object and gives its value in place. Of a std::vector<E> that is an ArrayView<E>.
  /// Of a struct with spans or string views among its fields it is the struct, whose members point
  /// into the object. The view pins the bytes; other members are copied. Same-node cost is
  /// independent of the size; from another node the bytes are first brought to this one. Errors: as
  /// Runtime::get().
  template <class T>
  Result<typename view_detail::Viewed<T>::Type> view(const ObjectRef<T>& ref, Until until = {}) {
    if (!ref.is_valid()) return invalid_argument("view of an ObjectRef that refers to nothing");
    return view_of<T>(*ref.state(), until.at());
  }

  /// All values in order, or a failure as soon as there is one, with "rank 3: " before its message.
  /// Of several that are there, it is the one that most likely caused the others, and of equal ones
  /// the first by position. kDeadlineExceeded names the first that is missing.
  template <class T>
  Result<std::vector<T>> gather(const std::vector<ObjectRef<T>>& refs, Until until = {});
  Status gather(const std::vector<ObjectRef<void>>& refs, Until until = {});
  /// Waits for all, whatever becomes of each: one Result (for ObjectRef<void>: Status) per
  /// position.
  template <class T>
  std::vector<Result<T>> gather_each(const std::vector<ObjectRef<T>>& refs, Until until = {});
  std::vector<Status> gather_each(const std::vector<ObjectRef<void>>& refs, Until until = {});
  /// gather(), then `merge(std::vector<T>)`: what several members made as one value. `merge`
  /// returns R or Result<R>.
  template <class T, class Merge>
  auto collect(const std::vector<ObjectRef<T>>& refs, Merge&& merge, Until until = {});

  /// The objects in the order in which they settle: `for (const auto& [index, ref] :
  /// rt.objects().as_completed(refs, 10s)) ...`. Nothing is polled.
  template <class T>
  Completions<T> as_completed(std::vector<ObjectRef<T>> refs, Until until = {}) {
    return Completions<T>(std::move(refs), until.at());
  }

  /// An object without a value that settles when all of these have, or fails with the first
  /// failure, "rank 3: " before its message. To wait for, or to pass on: a call that takes it as an
  /// argument starts when all are there. Does not block.
  template <class T>
  ObjectRef<void> when_all(const std::vector<ObjectRef<T>>& refs) {
    return when_all_of(runtime_detail::states_of(refs));
  }
  /// The same for objects of several types.
  template <class First, class... More>
  ObjectRef<void> when_all(const ObjectRef<First>& first, const ObjectRef<More>&... more) {
    return when_all_of({first.state(), more.state()...});
  }

  /// Every object of the cluster from 64 KiB, with what keeps it, and the nodes' stores; what
  /// `starling list objects` prints. For tests and debugging: asks every process, and waits for
  /// those that do not answer for a part of the time.
  Result<ObjectList> list(Until until = std::chrono::seconds(10));

 private:
  /// Waits until all have settled or one has failed. The position of the failure of the whole;
  /// none: all have values.
  std::optional<std::size_t> wait_for_all(const std::vector<ObjectStatePtr>& objects,
                                          Deadline deadline);
  ObjectRef<void> when_all_of(const std::vector<ObjectStatePtr>& objects);

  const Connection& connection_;
};

template <class T>
Result<std::vector<T>> ObjectApi::gather(const std::vector<ObjectRef<T>>& refs, Until until) {
  const auto failed = wait_for_all(runtime_detail::states_of(refs), until.at());
  const auto named = [](const Status& status, std::size_t rank) {
    return status.with_context("rank " + std::to_string(rank));
  };
  if (failed) {
    Result<T> value = get_value(refs[*failed], until.at());
    if (!value.ok()) return named(value.status(), *failed);
  }
  std::vector<T> values;
  values.reserve(refs.size());
  for (std::size_t rank = 0; rank < refs.size(); ++rank) {
    Result<T> value = get_value(refs[rank], until.at());
    if (!value.ok()) return named(value.status(), rank);
    values.push_back(*std::move(value));
  }
  return values;
}

template <class T>
std::vector<Result<T>> ObjectApi::gather_each(const std::vector<ObjectRef<T>>& refs, Until until) {
  std::vector<Result<T>> results;
  results.reserve(refs.size());
  for (const auto& ref : refs) results.push_back(get_value(ref, until.at()));
  return results;
}

template <class T, class Merge>
auto ObjectApi::collect(const std::vector<ObjectRef<T>>& refs, Merge&& merge, Until until) {
  using Merged = std::invoke_result_t<Merge, std::vector<T>>;
  using Wrapped = std::conditional_t<runtime_detail::kIsResult<Merged>, Merged, Result<Merged>>;
  Result<std::vector<T>> values = gather(refs, until);
  if (!values.ok()) return Wrapped(values.status());
  return Wrapped(std::forward<Merge>(merge)(*std::move(values)));
}

}  // namespace runtime
