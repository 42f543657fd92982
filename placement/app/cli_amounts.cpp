#include "placement/app/cli_amounts.h"

#include <nlohmann/json.hpp>
#include <set>

#include "runtime/control/resource_units.h"

namespace placement {

namespace {

constexpr std::size_t kShownMax = 200;  // of a user's text in a message

using AmountsJson = nlohmann::json;

/// A JSON object whose keys differ: of two equal ones the parser would silently take the last.
runtime::Result<AmountsJson> parse_object(const std::string& option, const std::string& text) {
  std::set<std::string> seen;
  std::string twice;
  const AmountsJson json = AmountsJson::parse(
      text,
      [&](int depth, AmountsJson::parse_event_t event, AmountsJson& parsed) {
        if (depth == 1 && event == AmountsJson::parse_event_t::key &&
            !seen.insert(parsed.get<std::string>()).second)
          twice = parsed.get<std::string>();
        return true;
      },
      /*allow_exceptions=*/false);
  if (!json.is_object())
    return runtime::invalid_argument(
        option + " is not a JSON object like '{\"x\": 1}': " + text.substr(0, kShownMax));
  if (!twice.empty()) return runtime::invalid_argument(option + " has '" + twice + "' twice");
  return json;
}

}  // namespace

runtime::Status add_resources(const CliAmounts& amounts, runtime::ResourceMap& resources) {
  if (amounts.cpus) resources["CPU"] = *amounts.cpus;
  if (amounts.gpus) resources["GPU"] = *amounts.gpus;
  if (amounts.resources) {
    auto json = parse_object("--resources", *amounts.resources);
    if (!json.ok()) return json.status();
    for (const auto& [name, amount] : json->items()) {
      if ((name == "CPU" && amounts.cpus) || (name == "GPU" && amounts.gpus)) {
        return runtime::invalid_argument("--resources: '" + name + "' is given by " +
                                         (name == "CPU" ? "--num-cpus" : "--num-gpus") +
                                         " already");
      }
      if (!amount.is_number())
        return runtime::invalid_argument("--resources: '" + name.substr(0, kShownMax) +
                                         "' is not a number");
      resources[name] = amount.get<double>();
    }
  }
  if (runtime::Status status = runtime::check_resources(resources); !status.ok()) return status;
  std::erase_if(resources, [](const auto& entry) { return entry.second == 0; });
  return {};
}

bool names(const CliAmounts& amounts, const std::string& resource) {
  if (!amounts.resources) return false;
  auto json = parse_object("--resources", *amounts.resources);
  return json.ok() && json->contains(resource);
}

runtime::Result<runtime::Labels> parse_labels(const std::string& option,
                                              const std::vector<std::string>& lines) {
  runtime::Labels labels;
  for (const std::string& line : lines) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0)
      return runtime::invalid_argument(option + " is not KEY=VALUE: " + line);
    if (!labels.emplace(line.substr(0, equals), line.substr(equals + 1)).second)
      return runtime::invalid_argument(option + " " + line.substr(0, equals) + " is given twice");
  }
  return labels;
}

}  // namespace placement
