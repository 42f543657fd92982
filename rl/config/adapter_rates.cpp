#include "rl/config/adapter_rates.h"

#include <cstdlib>

#include "rl/config/judge.h"
#include "rl/config/number_text.h"

namespace rl {
namespace {

constexpr double kAdapterFactor = 10.0;

// A rate, and the section of the model that it trains.
struct TrainedRate {
  const char* key;
  const char* model;
  const char* steps;  // no note where this key is 0
};

constexpr TrainedRate kTrainedRates[] = {
    {"optim.lr", "model", ""},
    {"actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.model", ""},
    {"sft.lr", "actor_rollout_ref.model", "sft.steps"},
};

bool trains_adapter(const Config& config, const std::string& model) {
  const nlohmann::ordered_json* rank = config.find(model + ".lora_rank");
  if (rank != nullptr && rank->is_number() && rank->get<double>() > 0) return true;
  const nlohmann::ordered_json* folder = config.find(model + ".lora_adapter_path");
  return folder != nullptr && !is_empty_value(*folder);
}

}  // namespace

std::vector<AdapterRate> adapter_rates(const Config& config, const KeyTable& keys) {
  std::vector<AdapterRate> rates;
  for (const TrainedRate& trained : kTrainedRates) {
    const KeyInfo* row = keys.find(trained.key);
    const nlohmann::ordered_json* value = config.find(trained.key);
    const bool by_default = row != nullptr && row->has_default() && value != nullptr &&
                            value->is_number() && !config.is_set(trained.key);
    if (!by_default || !trains_adapter(config, trained.model)) continue;
    const std::string times_ten = number_text(kAdapterFactor * value->get<double>(), 12);
    AdapterRate rate{trained.key, std::strtod(times_ten.c_str(), nullptr), {}};
    const nlohmann::ordered_json* steps = config.find(trained.steps);
    if (steps == nullptr || *steps != 0) {
      rate.note = rate.key + " is not set: " + times_ten + ", ten times the default of " +
                  number_text(value->get<double>(), 12) + ", since a LoRA adapter is trained";
    }
    rates.push_back(std::move(rate));
  }
  return rates;
}

}  // namespace rl
