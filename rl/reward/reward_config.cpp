// From the keys of `reward.*` to a RewardFunction.
#include <algorithm>
#include <cmath>
#include <utility>

#include "rl/reward/early_scorer.h"
#include "rl/reward/http_scorer.h"
#include "rl/reward/process_scorer.h"
#include "rl/reward/reward_function.h"
#include "rl/reward/rule_scorer.h"
#include "rl/reward/sandbox_scorer.h"
#include "runtime/core/environment.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;
using ScorerResult = Result<std::unique_ptr<Scorer>>;

template <class T>
ScorerResult as_scorer(Result<std::unique_ptr<T>> scorer) {
  if (!scorer.ok()) return scorer.status();
  return std::unique_ptr<Scorer>(std::move(*scorer));
}

/// Makes scorers, all with the limits of one run.
class Maker {
 public:
  static Result<Maker> from_config(const Config& config, std::int64_t workers, bool start,
                                   const RewardModelLoader& load_model) {
    Maker maker(config, start, load_model);
    ConfigReader read(config);
    const std::int64_t processes = read.get_int("reward.num_workers");
    const double timeout = read.get_float("reward.timeout");
    const std::int64_t memory = read.get_int("reward.memory_limit_mb");
    const std::int64_t retries = read.get_int("reward.retries");
    maker.limits_.overtake = read.get_bool("reward.overtake");
    if (!read.status().ok()) return read.status();
    maker.workers_ = static_cast<std::size_t>(workers);
    maker.limits_.workers = static_cast<std::size_t>((processes + workers - 1) / workers);
    maker.limits_.timeout = std::chrono::milliseconds(std::llround(timeout * 1000));
    maker.limits_.memory_bytes = memory << 20;
    maker.limits_.retries = static_cast<int>(retries);
    return maker;
  }

  ScorerResult rule(const std::string& name, const ordered_json& options,
                    const std::string& key) const {
    if (name.empty() || name == "data_source") return by_data_source();
    Result<Rule> rule = Rule::create(name, options);
    if (!rule.ok()) return rule.status().with_context(key);
    return std::unique_ptr<Scorer>(std::make_unique<RuleScorer>(std::move(*rule)));
  }

  ScorerResult by_data_source() const {
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

  ScorerResult python(const std::string& file, const std::string& function,
                      const ordered_json& kwargs) const {
    if (!start_) return nothing();
    const Result<std::optional<std::string>> manager =
        config_.find_string("reward.reward_manager.name");
    if (!manager.ok()) return manager.status();
    return as_scorer(
        ProcessScorer::python(file, function, kwargs, limits_,
                              *manager == "batch" ? CallForm::kLists : CallForm::kSample));
  }

  ScorerResult library(const std::string& file) const {
    if (!start_) return nothing();
    return as_scorer(ProcessScorer::library(file, limits_));
  }

  ScorerResult http(const std::string& url) const {
    ConfigReader read(config_);
    HttpScorerOptions options{.url = url, .headers = {}};
    const std::int64_t batch = read.get_int("reward.http.batch_size"),
                       concurrency = read.get_int("reward.http.concurrency");
    const auto variable = read.find_string("reward.http.auth_env");
    if (!read.status().ok()) return read.status();
    if (!start_) return nothing();
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

  ScorerResult model(const std::string& folder) const {
    if (!load_model_) return runtime::unimplemented("a reward model is not loaded by this program");
    return load_model_(folder, start_);
  }

  /// One entry of reward.mixture.
  Result<RewardFunction::Part> part(const ordered_json& entry, std::size_t index) const {
    const std::string at = "reward.mixture[" + std::to_string(index) + "]";
    if (!entry.is_object())
      return invalid_argument(
          at + ": expected a dictionary such as {rule: gsm8k, weight: 0.9}, got " + entry.dump());
    RewardFunction::Part part;
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

 private:
  Maker(const Config& config, bool start, const RewardModelLoader& load_model)
      : config_(config), start_(start), load_model_(load_model) {}
  static ScorerResult nothing() { return std::unique_ptr<Scorer>(); }

  const Config& config_;
  bool start_;
  const RewardModelLoader& load_model_;
  ScoringLimits limits_;
  std::size_t workers_ = 1;  // that share what may run at once
};

ordered_json tree_at(const Config& config, const char* key) {
  const ordered_json* found = config.find(key);
  return found == nullptr ? ordered_json() : *found;
}

Result<std::vector<RewardFunction::Part>> mixture(const Maker& maker, const ordered_json& entries) {
  if (!entries.is_array() || entries.empty())
    return invalid_argument(
        "reward.mixture: expected a list such as [{rule: gsm8k, weight: 0.9}, {rule: format, "
        "weight: 0.1}]");
  std::vector<RewardFunction::Part> parts;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Result<RewardFunction::Part> part = maker.part(entries[i], i);
    if (!part.ok()) return part.status();
    const bool again = std::any_of(parts.begin(), parts.end(),
                                   [&](const auto& other) { return other.name == part->name; });
    if (again)
      return invalid_argument("reward.mixture[" + std::to_string(i) + "]: there is a part '" +
                              part->name + "' already: give it a name of its own (name: ...)");
    parts.push_back(std::move(*part));
  }
  return parts;
}

}  // namespace

Result<std::unique_ptr<RewardFunction>> RewardFunction::from_config(
    const Config& config, std::int64_t workers, bool start, const RewardModelLoader& load_model) {
  const Result<LengthPenalty> penalty = LengthPenalty::from_config(config);
  if (!penalty.ok()) return penalty.status();
  const Result<Maker> maker =
      Maker::from_config(config, std::max<std::int64_t>(1, workers), start, load_model);
  if (!maker.ok()) return maker.status();
  ConfigReader read(config);
  const auto rule = read.find_string("reward.rule"), url = read.find_string("reward.http.url"),
             library = read.find_string("reward.shared_library.path");
  const auto file = read.find_string("reward.custom_reward_function.path");
  const std::string function = read.get_string("reward.custom_reward_function.name");
  const bool uses_model = read.get_bool("reward.reward_model.enable");
  const auto model = read.find_string("reward.reward_model.model_path");
  const std::string on_failure = read.get_string("reward.on_failure");
  if (!read.status().ok()) return read.status();
  const ordered_json entries = tree_at(config, "reward.mixture");
  std::vector<std::string> given;
  if (rule) given.push_back("reward.rule");
  if (file) given.push_back("reward.custom_reward_function.path");
  if (url) given.push_back("reward.http.url");
  if (library) given.push_back("reward.shared_library.path");
  if (!entries.is_null()) given.push_back("reward.mixture");
  if (uses_model) given.push_back("reward.reward_model.enable");
  if (uses_model && !model)
    return invalid_argument(
        "reward.reward_model.enable=true needs reward.reward_model.model_path: the folder, or the "
        "name on the hub, of a classifier with a number for a whole conversation");
  if (uses_model && file) {
    return runtime::unimplemented(
        "reward.custom_reward_function.path beside reward.reward_model.enable=true is verl's "
        "generative reward model, which the function asks over HTTP: that server is not "
        "started here. To add a classifier's score to the function's, use reward.mixture=[{model: "
        "FOLDER}, {function: FILE.py}] and reward.reward_model.enable=false");
  }
  if (given.size() > 1)
    return invalid_argument(
        given[0] + " and " + given[1] +
        " both say how to score: set one of them, or mix them by reward.mixture");
  std::vector<Part> parts;
  if (!entries.is_null()) {
    Result<std::vector<Part>> mixed = mixture(*maker, entries);
    if (!mixed.ok()) return mixed.status();
    parts = std::move(*mixed);
  } else {
    ScorerResult scorer =
        uses_model ? maker->model(*model)
        : file     ? maker->python(*file, function,
                                   tree_at(config, "reward.custom_reward_function.reward_kwargs"))
        : url      ? maker->http(*url)
        : library
            ? maker->library(*library)
            : maker->rule(rule.value_or(""), tree_at(config, "reward.rule_kwargs"), "reward.rule");
    if (!scorer.ok())
      return uses_model ? scorer.status().with_context("reward.reward_model.model_path")
                        : scorer.status();
    const char* const name = uses_model ? "model"
                             : file     ? "function"
                             : url      ? "http"
                             : library  ? "library"
                                        : "rule";
    parts.push_back({.name = name, .weight = 1.0, .scorer = std::move(*scorer)});
  }
  return std::make_unique<RewardFunction>(std::move(parts), *penalty, on_failure == "error");
}

}  // namespace rl
