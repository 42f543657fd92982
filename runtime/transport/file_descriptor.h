// FileDescriptor: an owned descriptor of the operating system.
#pragma once

#include <unistd.h>

#include <utility>

namespace runtime {

/// Owns a descriptor and closes it at the end of its life. Move-only; -1 means "none".
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Releases the ownership of the descriptor; the caller closes it.
  int release() { return std::exchange(fd_, -1); }
  /// Closes the present descriptor and owns `fd` instead.
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace runtime
