#include "rl/comm/peer_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/eventually.h"

namespace rl {
namespace {

using runtime::ErrorCode;

/// A child that changes `text` in its own memory, and waits for its end.
class ChildWithText {
 public:
  ChildWithText() : text_(300'000, 'p') {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      let_peers_read();
      text_.assign(text_.size(), 'c');
      (void)!::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~ChildWithText() {
    if (pid_ > 0) end();
  }

  void end() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  pid_t pid() const { return pid_; }
  std::size_t size() const { return text_.size(); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(text_.data()); }

 private:
  std::string text_;
  pid_t pid_ = -1;
};

TEST(PeerProcess, IsReadWhereItsMemoryIs) {
  const ChildWithText child;
  const PeerProcess process(child.pid());
  ASSERT_TRUE(process);
  EXPECT_FALSE(process.has_ended());
  std::string text(child.size(), '-');
  const auto there = process.read(child.address(), std::as_writable_bytes(std::span(text)));
  ASSERT_TRUE(there.ok()) << there.to_string();
  EXPECT_EQ(text, std::string(child.size(), 'c'));
}

TEST(PeerProcess, WhatIsNotThereIsAnErrorThatNamesTheProcess) {
  const ChildWithText child;
  const PeerProcess process(child.pid());
  std::vector<std::byte> bytes(16);
  const auto there = process.read(/*address=*/16, bytes);
  EXPECT_EQ(there.code(), ErrorCode::kInternal);
  EXPECT_NE(there.to_string().find("process " + std::to_string(child.pid())), std::string::npos)
      << there.to_string();
}

TEST(PeerProcess, ItsEndIsNoticed) {
  ChildWithText child;
  const PeerProcess process(child.pid());
  child.end();
  EXPECT_TRUE(support::eventually([&] { return process.has_ended(); }));
  std::vector<std::byte> bytes(16);
  EXPECT_EQ(process.read(child.address(), bytes).code(), ErrorCode::kUnavailable);
}

TEST(PeerProcess, OneThatIsNotThereIsNone) {
  ChildWithText child;
  const pid_t pid = child.pid();
  child.end();
  EXPECT_FALSE(PeerProcess(pid));
  EXPECT_FALSE(PeerProcess());
}

}  // namespace
}  // namespace rl
