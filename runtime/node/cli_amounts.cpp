#include "runtime/node/cli_amounts.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace runtime {

Status add_resources(const CliAmounts& amounts, ResourceMap& resources) {
  if (amounts.cpus) resources["CPU"] = *amounts.cpus;
  if (amounts.gpus) resources["GPU"] = *amounts.gpus;
  if (!amounts.resources.empty()) {
    auto json = nlohmann::json::parse(amounts.resources, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return invalid_argument("--resources is not a JSON object like '{\"x\": 1}': " + amounts.resources);
    for (const auto& [name, amount] : json.items()) {
      if ((name == "CPU" && amounts.cpus) || (name == "GPU" && amounts.gpus)) {
        return invalid_argument("--resources: '" + name + "' is given by " + (name == "CPU" ? "--num-cpus" : "--num-gpus") + " already");
      }
      if (!amount.is_number()) return invalid_argument("--resources: '" + name + "' is not a number");
      resources[name] = amount.get<double>();
    }
  }
  for (const auto& [name, amount] : resources) {
    if (!(amount >= 0) || std::isinf(amount)) return invalid_argument("resource '" + name + "' is not an amount from zero up");
  }
  std::erase_if(resources, [](const auto& entry) { return entry.second == 0; });
  return {};
}

Result<Labels> parse_labels(const std::string& option, const std::vector<std::string>& lines) {
  Labels labels;
  for (const std::string& line : lines) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) return invalid_argument(option + " is not KEY=VALUE: " + line);
    if (!labels.emplace(line.substr(0, equals), line.substr(equals + 1)).second) return invalid_argument(option + " " + line.substr(0, equals) + " is given twice");
  }
  return labels;
}

}  // namespace runtime
