// A config.json from anywhere: parsing it either fails with a message or gives a config that writes
// and reads back equal.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "rl/model/model_config.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = nlohmann::json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return 0;
  const auto config = rl::ModelConfig::from_json(object, "config.json");
  if (!config.ok()) {
    CHECK(!config.status().message().empty());
    return 0;
  }
  const auto again = rl::ModelConfig::from_json(config->to_json(), "config.json");
  CHECK(again.ok());
  CHECK(*again == *config);
  return 0;
}
