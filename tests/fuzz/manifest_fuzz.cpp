// A checkpoint's manifest, and a note of a writer's hashes, with any content: read as what is
// written again, or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rl/checkpoint/hash_note.h"
#include "rl/checkpoint/manifest.h"
#include "runtime/core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = runtime::parse_json<nlohmann::ordered_json>(text);
  const auto manifest = rl::Manifest::from_json(json);
  if (manifest.ok() && !(*rl::Manifest::from_json(manifest->to_json()) == *manifest)) std::abort();
  const auto note = rl::parse_hash_note(text);
  if (!note.ok()) return 0;
  for (const rl::RangeHash& range : note->ranges)
    if (range.begin >= range.end || range.end > note->bytes) std::abort();
  return 0;
}
