#include "runtime/core/printable_stream.h"

#include <unistd.h>

#include "runtime/core/printable_text.h"

namespace runtime {

PrintableStream::PrintableStream(std::ostream& stream, int descriptor)
    : stream_(stream), target_(stream.rdbuf()), is_terminal_(::isatty(descriptor) == 1) {
  if (is_terminal_) stream_.rdbuf(this);
}

PrintableStream::~PrintableStream() {
  if (!is_terminal_) return;
  (void)pass_on(/*all=*/true);
  target_->pubsync();
  stream_.rdbuf(target_);
}

bool PrintableStream::pass_on(bool all) {
  const std::size_t whole = all ? waiting_.size() : whole_characters(waiting_);
  const std::string text = printable_text(std::string_view(waiting_).substr(0, whole));
  waiting_.erase(0, whole);
  const auto size = static_cast<std::streamsize>(text.size());
  return target_->sputn(text.data(), size) == size;
}

PrintableStream::int_type PrintableStream::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize PrintableStream::xsputn(const char* bytes, std::streamsize count) {
  waiting_.append(bytes, static_cast<std::size_t>(count));
  return pass_on(/*all=*/false) ? count : 0;
}

int PrintableStream::sync() { return target_->pubsync(); }

}  // namespace runtime
