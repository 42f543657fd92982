// PrintablePieces: the printable form of a text that comes in pieces.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

/// One stream. A terminal gets the whole as by printable_text(), so that a character may lie in two
/// pieces. A file or a pipe gets it as it is.
class PrintablePieces {
 public:
  /// `descriptor`: what the pieces are written to.
  explicit PrintablePieces(int descriptor);

  bool is_terminal() const { return is_terminal_; }
  std::string add(std::string_view piece);
  /// The end: a character that has begun, and does not go on.
  std::string finish();

 private:
  const bool is_terminal_;
  std::string waiting_;
};

}  // namespace runtime
