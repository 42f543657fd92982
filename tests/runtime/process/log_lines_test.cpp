#include "runtime/process/log_lines.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(LogLines, ThePrefixTellsWhoseTheyAreBeforeAWorkerHasAnActorToo) {
  LogLines lines;
  lines.node.bytes[0] = 0x7f;
  lines.pid = 12;
  EXPECT_EQ(lines.prefix(), "(worker pid=12, node=7f000000) ");
  lines.class_name = "Counter";
  EXPECT_EQ(lines.prefix(), "(Counter pid=12, node=7f000000) ");
}

}  // namespace
}  // namespace runtime
