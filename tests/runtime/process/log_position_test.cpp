#include "runtime/process/log_position.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "runtime/transport/file_descriptor.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

class LogPositionTest : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(log_, std::ios::app) << text; }
  void rotate(const std::string& next) const {
    std::filesystem::rename(log_, log_ + ".1");
    write(next);
  }
  static std::uint64_t identity(const std::string& path) {
    return log_file_identity(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).get());
  }
  std::uint64_t before() const {
    const auto position = read_log_position(log_);
    EXPECT_TRUE(position);
    return position ? position->bytes_before : 0;
  }

  support::TemporaryFolder folder_;
  const std::string log_ = folder_.file("node.log");
};

TEST_F(LogPositionTest, CountsTheBytesOfAllFilesThatWereBefore) {
  EXPECT_FALSE(read_log_position(log_));
  write("four");
  note_rotation(log_);
  EXPECT_FALSE(read_log_position(log_)) << "it was never rotated";
  rotate("more");
  note_rotation(log_);
  EXPECT_EQ(before(), 4u);
  EXPECT_EQ(read_log_position(log_)->file, identity(log_));
  write(" than that");
  rotate("");
  note_rotation(log_);
  EXPECT_EQ(before(), 18u);
}

TEST_F(LogPositionTest, ARotationIsCountedOnce) {
  write("four");
  rotate("next");
  note_rotation(log_);
  note_rotation(log_);
  EXPECT_EQ(before(), 4u);
}

TEST_F(LogPositionTest, AfterARotationThatWasNotNotedTheCountBeginsAgain) {
  write("first");
  rotate("second");
  note_rotation(log_);
  rotate("thirds");
  rotate("fourth");
  note_rotation(log_);
  EXPECT_EQ(before(), 6u) << "the file before this one is all that is known";
}

TEST_F(LogPositionTest, AFileKeepsItsIdentityUnderAnotherName) {
  write("text");
  const std::uint64_t first = identity(log_);
  EXPECT_NE(first, 0u);
  rotate("other");
  EXPECT_EQ(identity(log_ + ".1"), first);
  EXPECT_NE(identity(log_), first);
  EXPECT_EQ(log_file_identity(-1), 0u);
}

TEST_F(LogPositionTest, DamagedPositionsAreNone) {
  for (const char* text : {"", "12", "twelve 7", "\n"}) {
    std::ofstream(log_ + ".begin") << text;
    EXPECT_FALSE(read_log_position(log_)) << text;
  }
}

TEST_F(LogPositionTest, APositionGoesWithItsLog) {
  EXPECT_EQ(log_of_position(log_ + ".begin").string(), log_);
  for (const char* other : {"node.log", "node.log.1", "begin", ".begin"})
    EXPECT_TRUE(log_of_position(folder_.file(other)).empty()) << other;
}

}  // namespace
}  // namespace runtime
