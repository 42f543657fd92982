// PrintableStream: keeps a terminal from obeying what a program writes to std::cout or std::cerr.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

#include "runtime/core/printable_pieces.h"

namespace runtime {

/// While it lives, what is written to `stream` reaches a terminal as printable_text(); a file or
/// pipe gets it as it is. For main(): text of models, rewards and data files passes through. Not
/// after std::ios::sync_with_stdio(), which gives std::cout another buffer.
class PrintableStream final : private std::streambuf {
 public:
  /// `descriptor`: what the stream writes to.
  PrintableStream(std::ostream& stream, int descriptor);
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;
  ~PrintableStream() override;

 private:
  int_type overflow(int_type byte) override;
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;
  int sync() override;
  bool pass_on(const std::string& text);

  std::ostream& stream_;
  std::streambuf* const target_;
  PrintablePieces pieces_;
};

}  // namespace runtime
