// `starling top`.
#pragma once

#include <chrono>
#include <string>

namespace placement {

struct TopOptions {
  std::string address;
  bool once = false;  // one look, as text; also when the output is no terminal
  std::chrono::milliseconds every{2000};
  int rows = 0;  // of actors; 0: what fits, or 20
};

/// Returns the exit code.
int top_command(const TopOptions& options);

}  // namespace placement
