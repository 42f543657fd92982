// A YAML configuration from anywhere: its values, or a message that names the line.
#include <cstddef>
#include <cstdint>
#include <string>

#include "rl/config/yaml.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries =
      rl::parse_yaml(std::string(reinterpret_cast<const char*>(data), size), "config.yaml");
  if (!entries.ok()) CHECK(entries.status().message().starts_with("config.yaml"));
  return 0;
}
