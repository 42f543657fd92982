// The cause of a process's end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace runtime {

/// How a process ended. `text` is for people: "killed by SIGKILL", "exited with code 3", "node 7f3a
/// left".
struct DeathCause {
  std::string text;
  std::int32_t pid = 0;
  std::int32_t exit_code = -1;  // -1: it did not exit by itself
  std::int32_t signal = 0;      // 0: no signal
  std::string output_tail;      // what it last wrote to stderr when it crashed: the backtrace
  bool operator==(const DeathCause&) const = default;
};

/// Of a death about which nothing else is known.
inline DeathCause cause_of(std::string text) {
  DeathCause cause;
  cause.text = std::move(text);
  return cause;
}

}  // namespace runtime
