// A command-line override from anywhere, alone and on top of the defaults: a configuration or a
// message.
#include <cstddef>
#include <cstdint>
#include <string>

#include "rl/config/config.h"
#include "rl/config/override.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto change = rl::parse_override(text);
  if (!change.ok()) {
    CHECK(!change.status().message().empty());
    return 0;
  }
  CHECK(!change->key.empty());
  const auto config = rl::Config::load({std::nullopt, {text}});
  CHECK(config.ok() || !config.status().message().empty());
  return 0;
}
