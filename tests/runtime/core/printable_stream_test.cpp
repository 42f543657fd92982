#include "runtime/core/printable_stream.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <sstream>

namespace runtime {
namespace {

class PrintableStreamTest : public ::testing::Test {
 protected:
  PrintableStreamTest() {
    EXPECT_EQ(::openpty(&terminal_, &other_, nullptr, nullptr, nullptr), 0);
    EXPECT_EQ(::pipe(pipe_), 0);
  }
  ~PrintableStreamTest() override {
    for (const int descriptor : {terminal_, other_, pipe_[0], pipe_[1]}) ::close(descriptor);
  }
  int terminal_ = -1, other_ = -1, pipe_[2];
};

TEST_F(PrintableStreamTest, ATerminalGetsNothingThatItObeys) {
  std::ostringstream out;
  {
    const PrintableStream printable(out, other_);
    out << "a \x1b[2J" << '\x9b' << "b \u202e \u00e9\n" << 7 << std::flush;
    EXPECT_EQ(out.rdbuf() == nullptr, false);
  }
  EXPECT_EQ(out.str(), "a \\x1b[2J\\x9bb \\u202e \u00e9\n7");
}

TEST_F(PrintableStreamTest, ACharacterInPiecesIsWhole) {
  std::ostringstream out;
  {
    const PrintableStream printable(out, other_);
    out << '\xc3' << std::flush << '\xa9' << " \xe2\x80";
  }
  EXPECT_EQ(out.str(), "\u00e9 \\xe2\\x80");
}

TEST_F(PrintableStreamTest, AFileGetsWhatWasWritten) {
  std::ostringstream out;
  {
    const PrintableStream printable(out, pipe_[1]);
    out << "\x1b[2J\xff";
  }
  EXPECT_EQ(out.str(), "\x1b[2J\xff");
}

}  // namespace
}  // namespace runtime
