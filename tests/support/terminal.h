// A terminal in the place of a standard stream.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <string>

/// A file descriptor, 1 or 2, is a terminal while this lives.
class Terminal {
 public:
  explicit Terminal(int descriptor) : descriptor_(descriptor), before_(::dup(descriptor)) {
    termios raw{};
    ::cfmakeraw(&raw);
    int inner = -1;
    EXPECT_EQ(::openpty(&outer_, &inner, nullptr, &raw, nullptr), 0);
    EXPECT_EQ(::dup2(inner, descriptor), descriptor);
    ::close(inner);
  }
  ~Terminal() {
    ::dup2(before_, descriptor_);
    ::close(before_);
    ::close(outer_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// What was written since, at most some kilobytes.
  std::string shown() {
    std::string text;
    std::array<char, 4096> bytes;
    pollfd ready{outer_, POLLIN, 0};
    while (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
      const ssize_t count = ::read(outer_, bytes.data(), bytes.size());
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  const int descriptor_;
  const int before_;
  int outer_ = -1;
};
