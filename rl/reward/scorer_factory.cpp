#include "rl/reward/scorer_factory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rl/reward/early_scorer.h"
#include "rl/reward/http_scorer.h"
#include "rl/reward/rule_scorer.h"
#include "rl/reward/sandbox_scorer.h"
#include "runtime/core/environment.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

namespace {

template <class T>
ScorerResult as_scorer(Result<std::unique_ptr<T>> scorer) {
  if (!scorer.ok()) return scorer.status();
  return std::unique_ptr<Scorer>(std::move(*scorer));
}

ScorerResult not_started() { return std::unique_ptr<Scorer>(); }

}  // namespace

Result<ScorerFactory> ScorerFactory::from_config(const Config& config, std::int64_t workers,
                                                 bool start, const RewardModelLoader& load_model) {
  ScorerFactory factory(config, start, load_model);
  ConfigReader read(config);
  const std::int64_t processes = read.get_int("reward.num_workers");
  const double timeout = read.get_float("reward.timeout");
  const std::int64_t memory = read.get_int("reward.memory_limit_mb");
  const std::int64_t retries = read.get_int("reward.retries");
  factory.limits_.overtake = read.get_bool("reward.overtake");
  if (!read.status().ok()) return read.status();
  factory.workers_ = static_cast<std::size_t>(workers);
  factory.limits_.workers = static_cast<std::size_t>((processes + workers - 1) / workers);
  factory.limits_.timeout = std::chrono::milliseconds(std::llround(timeout * 1000));
  factory.limits_.memory_bytes = memory << 20;
  factory.limits_.retries = static_cast<int>(retries);
  return factory;
}

ScorerResult ScorerFactory::rule(const std::string& name, const ordered_json& options,
                                 const std::string& key) const {
  if (name.empty() || name == "data_source") return by_data_source();
  Result<Rule> rule = Rule::create(name, options);
  if (!rule.ok()) return rule.status().with_context(key);
  return std::unique_ptr<Scorer>(std::make_unique<RuleScorer>(std::move(*rule)));
}

ScorerResult ScorerFactory::by_data_source() const {
  ConfigReader read(config_);
  const std::optional<std::string> url = read.find_string("reward.sandbox_fusion.url");
  const std::int64_t concurrency = read.get_int("reward.sandbox_fusion.max_concurrent"),
                     memory = read.get_int("reward.sandbox_fusion.memory_limit_mb");
  if (!read.status().ok()) return read.status();
  if (!url || url->empty()) return std::unique_ptr<Scorer>(std::make_unique<RuleScorer>());
  if (!start_) return std::unique_ptr<Scorer>(std::make_unique<SandboxedRules>(nullptr));
  const SandboxOptions options{
      .url = *url,
      .concurrency = (static_cast<std::size_t>(concurrency) + workers_ - 1) / workers_,
      .memory_limit_mb = memory,
      .timeout = limits_.timeout,
      .retries = limits_.retries};
  Result<std::unique_ptr<SandboxScorer>> sandbox = SandboxScorer::create(options);
  if (!sandbox.ok()) return sandbox.status();
  auto early = std::make_unique<EarlyScorer>(
      std::move(*sandbox), EarlyScoring{.batch_size = 1, .concurrency = options.concurrency});
  return std::unique_ptr<Scorer>(std::make_unique<SandboxedRules>(std::move(early)));
}

ScorerResult ScorerFactory::python(const std::string& file, const std::string& function,
                                   const ordered_json& kwargs) const {
  if (!start_) return not_started();
  const Result<std::optional<std::string>> manager =
      config_.find_string("reward.reward_manager.name");
  if (!manager.ok()) return manager.status();
  return as_scorer(ProcessScorer::python(
      file, function, kwargs, limits_, *manager == "batch" ? CallForm::kLists : CallForm::kSample));
}

ScorerResult ScorerFactory::library(const std::string& file) const {
  if (!start_) return not_started();
  return as_scorer(ProcessScorer::library(file, limits_));
}

ScorerResult ScorerFactory::http(const std::string& url) const {
  ConfigReader read(config_);
  HttpScorerOptions options{.url = url, .headers = {}};
  const std::int64_t batch = read.get_int("reward.http.batch_size"),
                     concurrency = read.get_int("reward.http.concurrency");
  const auto variable = read.find_string("reward.http.auth_env");
  if (!read.status().ok()) return read.status();
  if (!start_) return not_started();
  options.batch_size = static_cast<std::size_t>(batch);
  options.concurrency = static_cast<std::size_t>(concurrency);
  options.timeout = limits_.timeout;
  options.retries = limits_.retries;
  if (variable) {
    const char* token = runtime::environment_variable(variable->c_str());
    if (token == nullptr || *token == 0)
      return invalid_argument("reward.http.auth_env: the environment variable " + *variable +
                              " is not set where the reward workers run");
    options.headers.push_back(std::string("Authorization: Bearer ") + token);
  }
  const EarlyScoring early{.batch_size = options.batch_size, .concurrency = options.concurrency};
  Result<std::unique_ptr<HttpScorer>> scorer = HttpScorer::create(std::move(options));
  if (!scorer.ok()) return scorer.status();
  return std::unique_ptr<Scorer>(std::make_unique<EarlyScorer>(std::move(*scorer), early));
}

ScorerResult ScorerFactory::model(const std::string& folder) const {
  if (!load_model_) return runtime::unimplemented("a reward model is not loaded by this program");
  return load_model_(folder, start_);
}

Result<WeightedScorer> ScorerFactory::part(const ordered_json& entry, std::size_t index) const {
  const std::string at = "reward.mixture[" + std::to_string(index) + "]";
  if (!entry.is_object())
    return invalid_argument(
        at + ": expected a dictionary such as {rule: gsm8k, weight: 0.9}, got " + entry.dump());
  WeightedScorer part;
  ordered_json options = entry;
  const auto take = [&options](const char* key) {
    ordered_json value = options.value(key, ordered_json());
    options.erase(key);
    return value;
  };
  const ordered_json weight = take("weight"), name = take("name"), kwargs = take("kwargs"),
                     function_name = take("function_name");
  std::string kind, what;
  for (const char* key : {"rule", "function", "http", "library", "model"}) {
    const ordered_json value = take(key);
    if (value.is_null()) continue;
    if (!value.is_string() || !kind.empty())
      return invalid_argument(
          at + ": expected one of rule, function, http, library and model, with a string");
    kind = key;
    what = value.get<std::string>();
  }
  if (kind.empty())
    return invalid_argument(at + ": it names no rule, function, http, library or model");
  if (!weight.is_null() && !(weight.is_number() && std::isfinite(weight.get<double>())))
    return invalid_argument(at + ".weight: expected a number, got " + weight.dump());
  if (kind != "rule" && !options.empty())
    return invalid_argument(at + ": '" + options.items().begin().key() + "' means nothing to a " +
                            kind);
  part.weight = weight.is_null() ? 1.0 : weight.get<double>();
  part.name = name.is_string() ? name.get<std::string>() : kind == "rule" ? what : kind;
  ScorerResult scorer =
      kind == "rule" ? rule(what, options, at)
      : kind == "function"
          ? python(what,
                   function_name.is_string() ? function_name.get<std::string>() : "compute_score",
                   kwargs)
      : kind == "http"  ? http(what)
      : kind == "model" ? model(what)
                        : library(what);
  if (!scorer.ok()) return kind == "rule" ? scorer.status() : scorer.status().with_context(at);
  part.scorer = std::move(*scorer);
  return part;
}

Result<std::vector<WeightedScorer>> ScorerFactory::mixture(const ordered_json& entries) const {
  if (!entries.is_array() || entries.empty())
    return invalid_argument(
        "reward.mixture: expected a list such as [{rule: gsm8k, weight: 0.9}, {rule: format, "
        "weight: 0.1}]");
  std::vector<WeightedScorer> scorers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Result<WeightedScorer> part = this->part(entries[i], i);
    if (!part.ok()) return part.status();
    const bool again = std::any_of(scorers.begin(), scorers.end(),
                                   [&](const auto& other) { return other.name == part->name; });
    if (again)
      return invalid_argument("reward.mixture[" + std::to_string(i) + "]: there is a part '" +
                              part->name + "' already: give it another name (name: ...)");
    scorers.push_back(std::move(*part));
  }
  return scorers;
}

}  // namespace rl
