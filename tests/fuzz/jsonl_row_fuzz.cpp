// One line of a data file from anywhere: a row with a usable prompt, or a message that names the
// line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rl/data/jsonl.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto row =
      rl::parse_row(std::string_view(reinterpret_cast<const char*>(data), size), "prompt", "f:1");
  if (!row.ok()) {
    CHECK(row.status().message().starts_with("f:1: "));
    return 0;
  }
  CHECK(row->prompt.is_string() || (row->prompt.is_array() && !row->prompt.empty()));
  return 0;
}
