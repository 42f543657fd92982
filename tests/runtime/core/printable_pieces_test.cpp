#include "runtime/core/printable_pieces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/terminal.h"

namespace runtime {
namespace {

TEST(PrintablePieces, ATerminalGetsTheSameInWhateverPiecesItComes) {
  const std::string text = "a\x1b]0;x\x07 \u009b\u202e\u00e9\U0001F600\n\xff\xe2\x80";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::string shown;
    {
      const Terminal terminal(STDOUT_FILENO);
      PrintablePieces pieces(STDOUT_FILENO);
      for (std::size_t at = 0; at < text.size(); at += size)
        shown += pieces.add(text.substr(at, size));
      shown += pieces.finish();
    }
    EXPECT_EQ(shown, "a\\x1b]0;x\\x07 \\u009b\\u202e\u00e9\U0001F600\n\\xff\\xe2\\x80") << size;
  }
}

TEST(PrintablePieces, APipeGetsTheBytesAtOnce) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  PrintablePieces pieces(pipe[1]);
  EXPECT_EQ(pieces.add("\x1b[31m\xe2"), "\x1b[31m\xe2");
  EXPECT_EQ(pieces.add("\x80\xae"), "\x80\xae");
  EXPECT_EQ(pieces.finish(), "");
  for (const int descriptor : pipe) ::close(descriptor);
}

}  // namespace
}  // namespace runtime
