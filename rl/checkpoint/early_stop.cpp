#include "rl/checkpoint/early_stop.h"

#include <algorithm>
#include <utility>

#include "rl/config/number_text.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;

// Whether something is to happen every N steps, or after each epoch.
bool is_asked_for(const Config& config, const char* key) {
  const nlohmann::ordered_json* value = config.find(key);
  return value != nullptr &&
         (*value == kEachEpoch || (value->is_number() && value->get<std::int64_t>() >= 1));
}

// Validation's metrics need a validation.
runtime::Status check_measured(const Config& config, const char* key, const std::string& metric) {
  if (!is_of_validation(metric) || is_asked_for(config, "trainer.test_freq")) return {};
  return config.out_of_range(key,
                             "a metric of training steps, or trainer.test_freq at least 1, without "
                             "which nothing is validated");
}

std::string mode_of(const Goal& goal) { return goal.larger_is_better ? "max" : "min"; }

// Where no key says it, the metric's name does.
bool is_larger_better(ConfigReader& read, const char* key, const std::string& metric) {
  const std::optional<std::string> mode = read.find_string(key);
  return mode ? *mode == "max" : !metric.ends_with("loss") && !metric.ends_with("kl");
}

}  // namespace

bool is_of_validation(const std::string& metric) {
  return metric.starts_with("val-") || metric.starts_with("val/");
}

bool BestSoFar::observe(double now, bool larger_is_better, double min_delta) {
  const bool better =
      now == now &&
      (!value || (larger_is_better ? now > *value + min_delta : now < *value - min_delta));
  last = now;
  if (better) value = now;
  since = better ? 0 : since + 1;
  return better;
}

nlohmann::ordered_json BestSoFar::to_json(const Goal& goal) const {
  nlohmann::ordered_json json{{"metric", goal.metric}, {"mode", mode_of(goal)}, {"since", since}};
  if (value) json["value"] = *value;
  if (last) json["last"] = *last;
  return json;
}

BestSoFar BestSoFar::from_json(const nlohmann::ordered_json& state, const char* key,
                               const Goal& goal) {
  const auto found = state.find(key);
  if (found == state.end() || !found->is_object()) return {};
  const nlohmann::ordered_json& json = *found;
  const auto is = [&](const char* name, const std::string& text) {
    return json.contains(name) && json.at(name) == text;
  };
  if (!is("metric", goal.metric) || !is("mode", mode_of(goal))) return {};
  BestSoFar best;
  if (const auto value = json.find("value"); value != json.end() && value->is_number())
    best.value = value->get<double>();
  if (const auto last = json.find("last"); last != json.end() && last->is_number())
    best.last = last->get<double>();
  if (const auto since = json.find("since"); since != json.end() && since->is_number_integer())
    best.since = since->get<std::int64_t>();
  return best;
}

Result<EarlyStopOptions> EarlyStopOptions::from_config(const Config& config) {
  ConfigReader read(config);
  const std::string metric = read.find_string("trainer.early_stop.metric").value_or("");
  EarlyStopOptions options{
      .goal = {metric, is_larger_better(read, "trainer.early_stop.mode", metric)},
      .patience = read.get_int("trainer.early_stop.patience"),
      .min_delta = read.get_float("trainer.early_stop.min_delta"),
      .target = read.find_float("trainer.early_stop.target")};
  if (!read.status().ok()) return read.status();
  if (metric.empty() && options.target)
    return config.out_of_range("trainer.early_stop.target",
                               "null unless trainer.early_stop.metric names what is to reach it");
  const runtime::Status measured = check_measured(config, "trainer.early_stop.metric", metric);
  if (!measured.ok()) return measured;
  return options;
}

Result<SaveBestOptions> SaveBestOptions::from_config(const Config& config) {
  ConfigReader read(config);
  const std::string metric = read.find_string("trainer.save_best").value_or("");
  SaveBestOptions options{
      .goal = {metric, is_larger_better(read, "trainer.save_best_mode", metric)}};
  if (!read.status().ok()) return read.status();
  const runtime::Status measured = check_measured(config, "trainer.save_best", metric);
  if (!measured.ok()) return measured;
  if (!metric.empty() && !is_of_validation(metric) && !is_asked_for(config, "trainer.save_freq")) {
    return config.out_of_range("trainer.save_best",
                               "a metric of validation, or trainer.save_freq at least 1, without "
                               "which no checkpoint of a training step is looked at");
  }
  return options;
}

runtime::Status read_goals(const Config& config, SaveBestOptions& save_best,
                           EarlyStopOptions& early_stop) {
  Result<SaveBestOptions> best = SaveBestOptions::from_config(config);
  if (!best.ok()) return best.status();
  Result<EarlyStopOptions> stop = EarlyStopOptions::from_config(config);
  if (!stop.ok()) return stop.status();
  save_best = std::move(*best);
  early_stop = std::move(*stop);
  return {};
}

std::optional<std::string> EarlyStop::observe(const Metrics& metrics) {
  const auto found = metrics.find(options_.goal.metric);
  if (options_.goal.metric.empty()) return std::nullopt;
  if (found == metrics.end()) {
    const bool due = !is_of_validation(options_.goal.metric) ||
                     std::any_of(metrics.begin(), metrics.end(),
                                 [](const auto& metric) { return is_of_validation(metric.first); });
    if (due && !std::exchange(missed_, true)) {
      LOG(warn,
          "trainer.early_stop.metric={}: there is no such metric, so that nothing is stopped "
          "early; metrics.jsonl (trainer.logger=[file]) has their names",
          options_.goal.metric);
    }
    return std::nullopt;
  }
  best_.observe(found->second, options_.goal.larger_is_better, options_.min_delta);
  return reason_to_stop();
}

std::optional<std::string> EarlyStop::reason_to_stop() const {
  const Goal& goal = options_.goal;
  if (goal.metric.empty()) return std::nullopt;
  if (options_.target && best_.last &&
      (goal.larger_is_better ? *best_.last >= *options_.target : *best_.last <= *options_.target)) {
    return goal.metric + " reached " + number_text(*best_.last) +
           " (trainer.early_stop.target=" + number_text(*options_.target) + ")";
  }
  if (best_.since < options_.patience) return std::nullopt;
  return goal.metric + " has not improved in " + std::to_string(best_.since) +
         " measurements, the best was " + (best_.value ? number_text(*best_.value) : "none") +
         " (trainer.early_stop.patience=" + std::to_string(options_.patience) + ")";
}

}  // namespace rl
