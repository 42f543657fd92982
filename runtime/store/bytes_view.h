// BytesView and WritableObject: an object's bytes in shared memory, to read and to fill in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/store/object_location.h"
#include "runtime/transport/buffer.h"

namespace runtime {

/// A sealed object's bytes: read-only pages, aligned to 64, never copied. The object stays where it
/// is while a view, a copy of it, or a buffer made from it is alive. That holds even if its owner
/// frees it or dies. A value; copying costs one atomic increment.
class BytesView {
 public:
  BytesView() = default;
  BytesView(ObjectId id, Buffer bytes) : id_(id), bytes_(std::move(bytes)) {}

  const ObjectId& id() const { return id_; }
  std::span<const std::byte> bytes() const { return bytes_.bytes(); }
  std::size_t size() const { return bytes_.size(); }
  /// The same bytes as a buffer, for instance as a frame's payload. Holds the pin too.
  const Buffer& buffer() const { return bytes_; }

  /// The bytes as an array. Errors: kInvalidArgument unless the size is a multiple of the
  /// element's.
  template <class T>
  requires std::is_trivially_copyable_v<T> Result<std::span<const T>> as()
  const {
    if (bytes_.size() % sizeof(T) != 0) {
      return invalid_argument("object " + id_.hex() + ": " + std::to_string(bytes_.size()) +
                              " bytes are not a whole number of " + std::to_string(sizeof(T)) +
                              "-byte elements");
    }
    return std::span<const T>(reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T));
  }

 private:
  ObjectId id_;
  Buffer bytes_;
};

/// Where objects that are being filled in have their memory.
class ObjectHome {
 public:
  virtual ~ObjectHome() = default;
  /// An object was dropped unsealed.
  virtual void abandon(const ObjectLocation& location) = 0;
};

/// An object that its creator is filling in. Give it to ObjectClient::seal(); dropped unsealed, its
/// memory goes back.
class WritableObject {
 public:
  WritableObject() = default;
  WritableObject(ObjectLocation location, std::span<std::byte> data,
                 std::shared_ptr<ObjectHome> home)
      : location_(std::move(location)), data_(data), home_(std::move(home)) {}
  WritableObject(WritableObject&& other) noexcept
      : location_(std::move(other.location_)),
        data_(std::exchange(other.data_, {})),
        home_(std::move(other.home_)) {}
  WritableObject& operator=(WritableObject&& other) noexcept {
    if (this != &other) {
      drop();
      location_ = std::move(other.location_);
      data_ = std::exchange(other.data_, {});
      home_ = std::move(other.home_);
    }
    return *this;
  }
  ~WritableObject() { drop(); }

  const ObjectId& id() const { return location_.id; }
  const ObjectLocation& location() const { return location_; }
  /// Null: empty, or released.
  const ObjectHome* home() const { return home_.get(); }
  /// Uninitialised at first, aligned to 64.
  std::span<std::byte> data() { return data_; }
  /// It is sealed: its memory stays.
  ObjectLocation release() {
    home_.reset();
    return std::move(location_);
  }

 private:
  void drop() {
    if (auto home = std::exchange(home_, nullptr)) home->abandon(location_);
  }

  ObjectLocation location_;
  std::span<std::byte> data_;
  std::shared_ptr<ObjectHome> home_;
};

}  // namespace runtime
