// A program that can be started though its file is replaced or removed.
#include "runtime/process/held_program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/process/children.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

class HeldProgramTest : public ::testing::Test {
 protected:
  /// A script that says this; another file than the one that was there.
  void write(const std::string& said) const {
    const std::string next = path_ + ".next";
    std::ofstream(next) << "echo " << said << "\n";
    std::filesystem::rename(next, path_);
  }
  static std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

  const support::TemporaryFolder folder_;
  const std::string path_ = folder_.file("program");
};

TEST_F(HeldProgramTest, IsStartedByItsPathWhileItsFileIsThere) {
  write("old");
  const HeldProgram program(path_);
  EXPECT_EQ(program.to_execute(), path_);
  std::ofstream(path_, std::ios::app) << "echo more\n";
  EXPECT_EQ(program.to_execute(), path_) << "the same file, though its content has changed";
}

TEST_F(HeldProgramTest, IsTheOldOneWhenItsFileIsReplaced) {
  write("old");
  const HeldProgram program(path_);
  write("new");
  EXPECT_NE(program.to_execute(), path_);
  std::ifstream held(program.to_execute());
  std::string line;
  std::getline(held, line);
  EXPECT_EQ(line, "echo old");
}

TEST_F(HeldProgramTest, IsTheOldOneWhenItsFileIsRemoved) {
  write("old");
  const HeldProgram program(path_);
  std::filesystem::remove(path_);
  EXPECT_NE(program.to_execute(), path_);
  EXPECT_TRUE(std::filesystem::exists(program.to_execute()));
}

TEST_F(HeldProgramTest, ThePathCountsAgainWhenTheFileIsBack) {
  write("old");
  const HeldProgram program(path_);
  std::filesystem::rename(path_, path_ + ".away");
  EXPECT_NE(program.to_execute(), path_);
  std::filesystem::rename(path_ + ".away", path_);
  EXPECT_EQ(program.to_execute(), path_);
}

TEST_F(HeldProgramTest, OneThatCannotBeOpenedIsLookedUpEachTime) {
  const HeldProgram program(path_);
  EXPECT_EQ(program.to_execute(), path_);
  write("late");
  EXPECT_EQ(program.to_execute(), path_);
  EXPECT_EQ(HeldProgram("sh").to_execute(), "sh") << "a name for PATH";
}

TEST_F(HeldProgramTest, OwnProgramIsOpenedAsItRuns) {
  const HeldProgram program(own_program());
  EXPECT_EQ(program.to_execute(), own_program());
}

TEST_F(HeldProgramTest, AForkedProcessExecutesWhatIsHeld) {
  std::filesystem::copy_file("/bin/sh", path_);
  const HeldProgram program(path_);
  write("another");
  Pipe output = test_pipe();
  SpawnSpec spec = shell("echo held", output);
  spec.program = program.to_execute();
  EXPECT_EQ(output_of(std::move(spec), output), "held\n");
}

}  // namespace
}  // namespace runtime
