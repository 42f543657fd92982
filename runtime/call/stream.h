// Stream<T> and StreamWriter<T>: a call that yields many values, as they are made.
//
//   Status generate(StreamWriter<std::string>& out, std::string prompt) {  // a method
//     while (...) {
//       // Waits while the caller is behind.
//       if (Status status = out.write(token); !status.ok()) return status;
//     }
//     return {};
//   }
//
//   Stream<std::string> tokens = actor.call(&Model::generate, prompt);  // the caller
//   for (const std::string& token : tokens) print(token);
//   if (!tokens.status().ok()) ...
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/call/object_ref.h"
#include "runtime/codec/codec.h"
#include "runtime/core/result.h"

namespace runtime {

/// A call of a method that yields values.
struct OpenStream {
  std::shared_ptr<StreamState> state;  // null: the call could not be made, see the result
  ObjectStatePtr result;
};

namespace stream_detail {
// StreamState for headers that do without the event loop.
Result<ObjectStatePtr> next(StreamState& stream, Deadline deadline);
bool ended(const StreamState& stream);
void abandon(StreamState& stream);
}  // namespace stream_detail

/// Takes the values of a call, in order. For the thread that runs the method.
class StreamSink {
 public:
  /// As StreamWriter::write.
  virtual Status write(Encoder& value) = 0;

 protected:
  ~StreamSink() = default;
};

/// The parameter of a method that yields values of type T, before its arguments (and behind a
/// CallContext). The method returns Status or void, and is no coroutine. The caller's window
/// (CallOptions::stream_window) bounds how far it may run ahead.
template <class T>
class StreamWriter {
 public:
  explicit StreamWriter(StreamSink& sink) : sink_(&sink) {}
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  /// Sends a copy; large arrays through shared memory. Blocks while the window is full. Errors:
  /// kCancelled (the caller has dropped the stream, cancelled the call or died: return),
  /// kDeadlineExceeded (of the call), kResourceExhausted (no room in the store).
  Status write(const T& value) {
    Encoder encoder;
    encode_value(encoder, value);
    return sink_->write(encoder);
  }

 private:
  StreamSink* sink_;
};

/// The values of one call, in order. For one thread; movable. Dropping it before its end cancels
/// the call: the method's next write fails with kCancelled.
template <class T>
class Stream {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(Stream* stream) : stream_(stream) { ++*this; }
    const T& operator*() const { return *value_; }
    const T* operator->() const { return &*value_; }
    Iterator& operator++() {
      Result<std::optional<T>> next = stream_->next();
      value_ = next.ok() ? *std::move(next) : std::nullopt;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !value_.has_value(); }

   private:
    Stream* stream_ = nullptr;
    std::optional<T> value_;
  };

  /// Refers to no call; next() fails with kInvalidArgument.
  Stream() = default;
  explicit Stream(OpenStream opened)
      : state_(std::move(opened.state)), result_(std::move(opened.result)) {}
  Stream(Stream&& other) noexcept = default;
  Stream& operator=(Stream&& other) noexcept {
    if (this != &other) {
      close();
      state_ = std::move(other.state_);
      result_ = std::move(other.result_);
      status_ = std::move(other.status_);
    }
    return *this;
  }
  ~Stream() { close(); }

  /// Waits for the next value; nothing at the end. Failures come after the values that were sent
  /// before them. They are the method's own Status, kActorDied, or kDeadlineExceeded of the call or
  /// of `deadline`. After that of `deadline` the stream goes on (done() is false). A large value
  /// (64 KiB and more) is an object of the actor's process until it is read, and kObjectLost when
  /// that has ended before.
  Result<std::optional<T>> next(Deadline deadline = Deadline::max()) {
    if (!state_)
      return keep(result_.is_valid() ? result_.state()->failure()
                                     : invalid_argument("a Stream that belongs to no call"));
    Result<ObjectStatePtr> object = stream_detail::next(*state_, deadline);
    if (!object.ok()) return keep(object.status());
    status_ = {};
    if (!*object) return std::optional<T>();
    Result<T> value = fetch<T>(**object, deadline);
    if (!value.ok()) return keep(value.status());
    return std::optional<T>(*std::move(value));
  }
  template <class Rep, class Period>
  Result<std::optional<T>> next(std::chrono::duration<Rep, Period> patience) {
    return next(deadline_after(patience));
  }

  /// Whether all values were taken and the call has ended.
  bool done() const { return !state_ || stream_detail::ended(*state_); }
  /// Of the last next(): why it gave no value; ok at the regular end. What to look at behind a
  /// loop.
  const Status& status() const { return status_; }
  /// Settles when the method has returned, whether its values were taken or not: to cancel, or to
  /// wait for.
  const ObjectRef<void>& result() const { return result_; }

  /// Values until the end or a failure; see status().
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Status keep(Status status) {
    status_ = status;
    return status;
  }
  void close() {
    if (state_) stream_detail::abandon(*state_);
    state_.reset();
  }

  std::shared_ptr<StreamState> state_;
  ObjectRef<void> result_;
  Status status_;
};

}  // namespace runtime
