// Rows and id lists as `starling generate` takes them from anyone.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rl/app/prompt_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto row = rl::parse_prompt_row(text, "fuzz:1");
  if (row.ok() && row->is_ids()) {
    for (std::int32_t id : std::get<0>(row->prompt)) CHECK(id >= 0);
  }
  const auto ids = rl::parse_ids(text);
  if (ids.ok()) {
    for (std::int32_t id : *ids) CHECK(id >= 0);
  }
  return 0;
}
