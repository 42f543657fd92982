#include "rl/reward/process_scorer.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "rl/reward/python_programs.h"
#include "runtime/core/environment.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {

namespace fs = std::filesystem;
using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

ProcessPoolOptions pool_options(const ScoringLimits& limits) {
  ProcessPoolOptions options;
  options.workers_max = std::max<std::size_t>(1, limits.workers);
  options.timeout = limits.timeout;
  options.retries = limits.retries;
  options.overtake = limits.overtake;
  return options;
}

Status check_file(const fs::path& file, const char* key) {
  std::error_code error;
  if (fs::is_regular_file(file, error)) return {};
  return runtime::not_found(std::string(key) + ": there is no file " + file.string() +
                            " (on the node that scores; the folder is " +
                            fs::current_path(error).string() + ")");
}

/// Next to this program, or in bin next to its folder.
Result<fs::path> find_host() {
  constexpr const char* kName = "starling-reward-host";
  if (const char* given = runtime::environment_variable("STARLING_REWARD_HOST");
      given != nullptr && *given != 0)
    return fs::path(given);
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate : {folder / kName, folder.parent_path() / "bin" / kName}) {
    if (fs::exists(candidate, error)) return candidate;
  }
  return runtime::not_found(std::string("reward.shared_library.path: the program ") + kName +
                            ", which loads the library, is not next to this program: set "
                            "STARLING_REWARD_HOST to where it is");
}

std::vector<json> calls_of(std::span<const ScoreRequest> requests) {
  std::vector<json> calls;
  for (const ScoreRequest& request : requests) calls.push_back(request_json(request));
  return calls;
}

}  // namespace

json request_json(const ScoreRequest& request) {
  json extra = runtime::parse_json(request.extra_info);
  // A text that is a dictionary is given as one; "[1, 2]" stays a text, since it may be an
  // interval.
  json truth = request.ground_truth_is_json || request.ground_truth.starts_with('{')
                   ? runtime::parse_json(request.ground_truth)
                   : json(request.ground_truth);
  if (truth.is_discarded()) truth = request.ground_truth;
  if (!request.has_ground_truth) truth = nullptr;
  return {{"data_source", request.data_source},
          {"solution_str", request.response},
          {"ground_truth", std::move(truth)},
          {"extra_info", extra.is_object() ? std::move(extra) : json::object()}};
}

// Scores become single precision on their way to advantages; not a number compares as false, too.
constexpr double kScoreMax = std::numeric_limits<float>::max();
constexpr std::size_t kKindsToldMax = 20;  // of failures, in the log

Score score_of(const json& message) {
  Score score;
  const auto value = message.find("score");
  if (value != message.end() && value->is_number() && std::abs(value->get<double>()) <= kScoreMax) {
    score.value = value->get<double>();
  } else {
    score.failure = ScoreFailure::kInvalid;
    const auto why = message.find("invalid");
    score.message =
        why != message.end() && why->is_string()
            ? why->get<std::string>()
            : "gave " +
                  message.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 100) +
                  ", which has no finite number 'score' (in single precision)";
    return score;
  }
  const auto extra = message.find("extra");
  if (extra == message.end() || !extra->is_object()) return score;
  for (const auto& [name, number] : extra->items()) {
    if (number.is_number()) score.extra[name] = number.get<double>();
  }
  return score;
}

Result<std::unique_ptr<ProcessScorer>> ProcessScorer::python(const fs::path& file,
                                                             const std::string& function,
                                                             const nlohmann::ordered_json& kwargs,
                                                             const ScoringLimits& limits,
                                                             CallForm form) {
  constexpr const char* kKey = "reward.custom_reward_function.path";
  const Status found = check_file(file, kKey);
  if (!found.ok()) return found;
  const char* interpreter = runtime::environment_variable("STARLING_PYTHON");
  ProcessPoolOptions options = pool_options(limits);
  options.command = {interpreter != nullptr && *interpreter != 0 ? interpreter : "python3", "-c",
                     std::string(kPythonServer) + kPythonScorer};
  options.setup = {{"path", file.string()},
                   {"name", function},
                   {"kwargs", kwargs.is_object() ? kwargs : nlohmann::ordered_json::object()},
                   {"lists", form == CallForm::kLists},
                   {"memory_bytes", limits.memory_bytes}};
  options.name = "reward python";
  options.copies = true;
  Result<std::unique_ptr<ProcessPool>> pool = ProcessPool::create(std::move(options));
  if (!pool.ok()) return pool.status().with_context(kKey);
  return std::unique_ptr<ProcessScorer>(
      new ProcessScorer(function + " of " + file.string(), std::move(*pool)));
}

Result<std::unique_ptr<ProcessScorer>> ProcessScorer::library(const fs::path& file,
                                                              const ScoringLimits& limits) {
  constexpr const char* kKey = "reward.shared_library.path";
  const Status found = check_file(file, kKey);
  if (!found.ok()) return found;
  const Result<fs::path> host = find_host();
  if (!host.ok()) return host.status();
  std::error_code error;
  ProcessPoolOptions options = pool_options(limits);
  options.command = {host->string()};
  options.setup = {{"path", fs::absolute(file, error).string()},
                   {"memory_bytes", limits.memory_bytes}};
  options.name = "reward library";
  Result<std::unique_ptr<ProcessPool>> pool = ProcessPool::create(std::move(options));
  if (!pool.ok()) return pool.status().with_context(kKey);
  return std::unique_ptr<ProcessScorer>(new ProcessScorer(file.string(), std::move(*pool)));
}

// The first of each kind in full; the rest are numbers in the metrics.
void ProcessScorer::log_first(const std::string& kind, const std::string& text) {
  if (logged_.size() < kKindsToldMax && logged_.insert(kind).second)
    LOG(warn, "{}: {}", what_, text);
}

void ProcessScorer::prepare(std::span<const ScoreRequest> requests) {
  calls_.prepare(calls_of(requests));
}

Result<ScoredBatch> ProcessScorer::score(std::span<const ScoreRequest> requests) {
  ScoredBatch batch;
  Result<std::vector<PoolAnswer>> answers = calls_.run(calls_of(requests), batch.counts);
  if (!answers.ok()) return answers.status().with_context(what_);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const PoolAnswer& answer = (*answers)[i];
    Score score;
    if (answer.failure == ScoreFailure::kNone) {
      score = score_of(answer.message);
    } else {
      score.failure = answer.failure;
      score.message = answer.why;
    }
    // A try that succeeded later leaves no trace here but in the counts.
    const auto trace =
        answer.message.is_object() ? answer.message.find("traceback") : answer.message.end();
    if (!score.ok()) {
      const std::string where = requests[i].where + ": ";
      if (trace != answer.message.end() && trace->is_string()) {
        log_first(score.message, where + trace->get<std::string>());
      } else {
        log_first(std::to_string(static_cast<int>(score.failure)), where + score.message);
      }
      score.message = what_ + ": " + score.message;
    }
    batch.scores.push_back(std::move(score));
  }
  return batch;
}

}  // namespace rl
