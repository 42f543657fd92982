#include "runtime/core/printable_pieces.h"

#include <unistd.h>

#include <utility>

#include "runtime/core/printable_text.h"

namespace runtime {

PrintablePieces::PrintablePieces(int descriptor) : is_terminal_(::isatty(descriptor) == 1) {}

std::string PrintablePieces::add(std::string_view piece) {
  if (!is_terminal_) return std::string(piece);
  waiting_ += piece;
  const std::size_t whole = whole_characters(waiting_);
  std::string text = printable_text(std::string_view(waiting_).substr(0, whole));
  waiting_.erase(0, whole);
  return text;
}

std::string PrintablePieces::finish() { return printable_text(std::exchange(waiting_, {})); }

}  // namespace runtime
