#include "runtime/core/rest_of.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace runtime {
namespace {

TEST(RestOf, IsAllThatIsLeft) {
  std::istringstream in("first line\n" + std::string(100'000, 'x'));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(rest_of(in), std::string(100'000, 'x'));
  EXPECT_EQ(rest_of(in), "");
  EXPECT_FALSE(in.bad());
}

TEST(RestOf, AFolderIsAReadThatFails) {
  std::ifstream in("/proc/self");
  EXPECT_EQ(rest_of(in), "");
  EXPECT_TRUE(in.bad());
  std::ifstream none("/no/such/file");
  EXPECT_EQ(rest_of(none), "");
}

}  // namespace
}  // namespace runtime
