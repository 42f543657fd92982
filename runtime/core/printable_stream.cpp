#include "runtime/core/printable_stream.h"

namespace runtime {

PrintableStream::PrintableStream(std::ostream& stream, int descriptor)
    : stream_(stream), target_(stream.rdbuf()), pieces_(descriptor) {
  if (pieces_.is_terminal()) stream_.rdbuf(this);
}

PrintableStream::~PrintableStream() {
  if (!pieces_.is_terminal()) return;
  (void)pass_on(pieces_.finish());
  target_->pubsync();
  stream_.rdbuf(target_);
}

bool PrintableStream::pass_on(const std::string& text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return target_->sputn(text.data(), size) == size;
}

PrintableStream::int_type PrintableStream::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize PrintableStream::xsputn(const char* bytes, std::streamsize count) {
  return pass_on(pieces_.add({bytes, static_cast<std::size_t>(count)})) ? count : 0;
}

int PrintableStream::sync() { return target_->pubsync(); }

}  // namespace runtime
