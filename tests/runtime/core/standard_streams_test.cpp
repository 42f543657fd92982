#include "runtime/core/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "tests/support/in_child.h"

namespace runtime {
namespace {

// What `body` returns in its own process.
TEST(StandardStreams, ThoseThatAreClosedAreOpened) {
  EXPECT_EQ(support::in_child([] {
              for (int stream = 0; stream <= 2; ++stream) ::close(stream);
              open_standard_streams();
              const int next = ::open("/dev/null", O_RDONLY);
              return next > 2 && ::write(1, "x", 1) == 1 && ::write(2, "x", 1) == 1 ? 0 : 1;
            }),
            0);
}

TEST(StandardStreams, AFullDiskIsNoSuccess) {
  const auto printing_to = [](const char* path, int code) {
    return support::in_child([=] {
      const int file = ::open(path, O_WRONLY);
      ::dup2(file, 1);
      std::cout << "text\n";
      return finish_standard_output(code);
    });
  };
  EXPECT_EQ(printing_to("/dev/full", 0), 1);
  EXPECT_EQ(printing_to("/dev/full", 2), 2);
  EXPECT_EQ(printing_to("/dev/null", 0), 0);
}

}  // namespace
}  // namespace runtime
