#include "rl/app/progress_line.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "runtime/core/printable_text.h"

namespace rl {
namespace {

constexpr std::chrono::seconds kQuiet{2};
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(const std::string& text) {
  const runtime::Deadline now = runtime::steady_now();
  if (!terminal_ || now - start_ < kQuiet || now - last_ < kInterval) return;
  last_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", runtime::printable_text(text, /*one_line=*/true).c_str());
  std::fflush(stderr);
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(runtime::steady_now() - start_).count();
}

}  // namespace rl
