#include "placement/autoscaler/provider.h"

#include <nlohmann/json.hpp>

namespace placement {

namespace {

/// 4 rather than 4.0, and no digits lost.
std::string amount_text(double amount) {
  return nlohmann::json(amount == static_cast<double>(static_cast<std::int64_t>(amount))
                            ? nlohmann::json(static_cast<std::int64_t>(amount))
                            : nlohmann::json(amount))
      .dump();
}

}  // namespace

std::vector<std::string> start_arguments(const NodeStart& start, const NodeRequest& request) {
  std::vector<std::string> words = {"start", "--address", start.address};
  nlohmann::json others = nlohmann::json::object();
  runtime::ResourceMap amounts = request.type.resources.to_map();
  // What is not said would be the machine's.
  amounts.try_emplace("CPU", 0);
  amounts.try_emplace("GPU", 0);
  for (const auto& [name, amount] : amounts) {
    if (name == "CPU")
      words.insert(words.end(), {"--num-cpus", amount_text(amount)});
    else if (name == "GPU")
      words.insert(words.end(), {"--num-gpus", amount_text(amount)});
    else
      others[name] = amount;
  }
  if (!others.empty()) words.insert(words.end(), {"--resources", others.dump()});
  for (const auto& [name, value] : request.labels)
    words.insert(words.end(), {"--label", name + "=" + value});
  return words;
}

}  // namespace placement
