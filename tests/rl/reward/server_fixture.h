// A server of this folder as a separate process, which ends when its stdin does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace rl {

class ServerTest : public ::testing::Test {
 protected:
  /// `program` prints its port and serves on loopback.
  explicit ServerTest(const std::string& program)
      : program_(std::string(STARLING_SOURCE_DIR "/tests/rl/reward/") + program) {}

  void SetUp() override {
    int in[2], out[2];
    ASSERT_EQ(::pipe(in), 0);
    ASSERT_EQ(::pipe(out), 0);
    server_ = ::fork();
    if (server_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (int fd = 3; fd < 64; ++fd) ::close(fd);
      ::execlp("python3", "python3", program_.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_server_ = in[1];
    std::FILE* said = ::fdopen(out[0], "r");
    ASSERT_EQ(std::fscanf(said, "%d", &port_), 1);
    std::fclose(said);
  }
  void TearDown() override {
    ::close(to_server_);
    ::waitpid(server_, nullptr, 0);
  }

  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

 private:
  std::string program_;
  pid_t server_ = -1;
  int to_server_ = -1;
  int port_ = 0;
};

}  // namespace rl
