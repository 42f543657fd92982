// The autoscaler's configuration, its records and what a provider's command prints, from anywhere:
// the first byte chooses which.
#include "placement/autoscaler/node_record.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "placement/autoscaler/command_provider.h"
#include "placement/autoscaler/config_file.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0: {
      const auto config = placement::parse_autoscaler_config(text, "nodes.yaml", "/");
      if (!config.ok())
        CHECK(config.status().message().starts_with("nodes.yaml:"));
      else
        CHECK(config->max_nodes >= 1 && !config->types.empty());
      break;
    }
    case 1: {
      const auto records = placement::decode_records(text);
      if (records.ok()) CHECK(placement::decode_records(placement::encode_records(*records)).ok());
      break;
    }
    default: (void)placement::parse_node_list(text);
  }
  return 0;
}
