#include "placement/app/cli_text.h"

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/core/printable_text.h"

namespace placement {

void say(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::vector<char> text(static_cast<std::size_t>(size > 0 ? size : 0) + 1);
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  const std::string out = runtime::printable_text({text.data(), text.size() - 1});
  std::fwrite(out.data(), 1, out.size(), stdout);
}

}  // namespace placement
