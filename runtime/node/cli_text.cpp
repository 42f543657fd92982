#include "runtime/node/cli_text.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace runtime {

std::string shown(const std::string& text, bool one_line) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // the other control characters, in UTF-8
      out += '?';
      ++i;
    } else if (c == 0x7f || (c < ' ' && (one_line || (c != '\n' && c != '\t')))) {
      out += '?';
    } else {
      out += text[i];
    }
  }
  return out;
}

void say(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::vector<char> text(static_cast<std::size_t>(size > 0 ? size : 0) + 1);
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  const std::string out = shown({text.data(), text.size() - 1});
  std::fwrite(out.data(), 1, out.size(), stdout);
}

}  // namespace runtime
