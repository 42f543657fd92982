#include "rl/app/reward.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/app/command_line.h"
#include "rl/config/config.h"
#include "rl/config/number_text.h"
#include "rl/data/json_text.h"
#include "rl/data/row_mapping.h"
#include "rl/data/row_source.h"
#include "rl/reward/length_penalty.h"
#include "rl/reward/reward_function.h"
#include "runtime/core/printable_text.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kComparedBytesMax = 200;  // of a text, where people read

struct RewardScoreOptions {
  std::string rows;
  std::string split;
  std::string config;
  std::vector<std::string> rewards;
  std::vector<std::string> overrides;
  bool json = false;

  void add_to(CLI::App& app) {
    app.add_option("rows", rows,
                   "a file whose rows have `response` and what judges it: `ground_truth`, "
                   "`data_source`, `extra_info`")
        ->required()
        ->type_name("ROWS");
    app.add_option("--split", split, "of a folder with several splits")->type_name("NAME");
    app.add_option("--reward", rewards,
                   "how to score: rule=math is reward.rule=math (repeatable; default: as "
                   "data_source says)")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--config", config, "the YAML file of a run or recipe: its data.* and reward.*")
        ->type_name("FILE");
    app.add_flag("--json", json,
                 "a JSON object a row, in the rows' order: score, rule, compared, and error where "
                 "there is no score");
    app.add_option("overrides", overrides,
                   "further keys of the configuration: data.columns.response=output, say")
        ->type_name("OVERRIDE");
  }
};

Result<Config> load_reward_config(const RewardScoreOptions& options) {
  ConfigSources sources;
  if (!options.config.empty()) sources.file = options.config;
  sources.overrides = options.overrides;
  for (const std::string& reward : options.rewards)
    sources.overrides.push_back(reward_override(reward));
  return Config::load(sources);
}

/// The name of the rule that scored, or of what did: "function", "http", the part of a mixture.
std::string scorer_of(const ExplainedScore::Part& part) {
  return part.score.rule.empty() ? part.name : part.score.rule;
}

ordered_json compared_json(const Score& score) {
  if (!score.compared) return nullptr;
  const auto text = [](const std::optional<std::string>& one) {
    return one ? ordered_json(*one) : ordered_json();
  };
  return {{"answer", text(score.compared->answer)},
          {"ground_truth", text(score.compared->ground_truth)}};
}

ordered_json part_json(const ExplainedScore::Part& part) {
  const std::string scorer = scorer_of(part);
  ordered_json out = {{"score", nullptr},
                      {"rule", scorer.empty() ? ordered_json() : ordered_json(scorer)},
                      {"compared", compared_json(part.score)}};
  if (part.failure.empty()) out["score"] = part.score.value;
  if (!part.score.extra.empty()) out["extra"] = part.score.extra;
  return out;
}

ordered_json explained_json(const ExplainedScore& explained) {
  if (explained.parts.size() == 1) {
    ordered_json out = part_json(explained.parts.front());
    if (const std::string why = explained.failure(); !why.empty()) out["error"] = why;
    return out;
  }
  const std::optional<double> value = explained.value();
  ordered_json out = {{"score", value ? ordered_json(*value) : ordered_json()},
                      {"rule", "mixture"},
                      {"compared", nullptr},
                      {"parts", ordered_json::array()}};
  for (const ExplainedScore::Part& part : explained.parts) {
    ordered_json one = part_json(part);
    one["name"] = part.name;
    one["weight"] = part.weight;
    out["parts"].push_back(std::move(one));
  }
  if (!value) out["error"] = explained.failure();
  return out;
}

std::string part_text(const ExplainedScore::Part& part) {
  std::string text = number_text(part.score.value) + " by " + scorer_of(part);
  if (!part.score.compared) return text;
  const auto shown = [](const std::optional<std::string>& one, const char* none) {
    return one ? "'" + excerpt(*one, kComparedBytesMax) + "'" : none;
  };
  return text + ": " + shown(part.score.compared->answer, "no answer") + " for " +
         shown(part.score.compared->ground_truth, "no ground truth");
}

std::string explained_text(const std::string& where, const ExplainedScore& explained) {
  if (const std::string why = explained.failure(); !why.empty()) return "error: " + why;
  if (explained.parts.size() == 1) return where + ": " + part_text(explained.parts.front());
  std::string text = where + ": " + number_text(*explained.value());
  for (const ExplainedScore::Part& part : explained.parts)
    text += "\n  " + number_text(part.weight) + " x " + part_text(part);
  return text;
}

/// Scores rows as they come, and prints each.
class GivenResponses {
 public:
  GivenResponses(RewardFunction& reward, RowMapping mapping, bool json)
      : reward_(reward), mapping_(std::move(mapping)), json_(json) {}

  void add(const std::vector<RawRow>& rows) {
    std::vector<ExplainedScore> explained(rows.size());
    std::vector<ScoreRequest> requests;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Result<ScoreRequest> request = request_of(rows[i]);
      if (request.ok()) {
        requests.push_back(std::move(*request));
        places.push_back(i);
      } else {
        explained[i].parts = {{"", 1.0, {}, request.status().message()}};
      }
    }
    std::vector<ExplainedScore> scored = reward_.explain(requests);
    for (std::size_t i = 0; i < scored.size(); ++i) {
      // What is no rule of ours was given both as they are.
      for (ExplainedScore::Part& part : scored[i].parts) {
        if (!part.score.rule.empty() || !part.failure.empty()) continue;
        Compared& compared = part.score.compared.emplace();
        compared.answer = requests[i].response;
        if (requests[i].has_ground_truth) compared.ground_truth = requests[i].ground_truth;
      }
      explained[places[i]] = std::move(scored[i]);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) print(rows[i].where, explained[i]);
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t failed() const { return failed_; }
  double mean() const { return sum_ / static_cast<double>(rows_ - failed_); }

 private:
  Result<ScoreRequest> request_of(const RawRow& raw) const {
    if (!raw.problem.empty()) return runtime::invalid_argument(raw.problem);
    const Result<DataRow> row = map_scored_row(raw, mapping_);
    if (!row.ok()) return row.status();
    ScoreRequest request{.data_source = row->data_source,
                         .response = *row->response,
                         .ground_truth = row->ground_truth,
                         .extra_info = row->extra.is_null() ? std::string() : json_line(row->extra),
                         .where = row->where,
                         .has_ground_truth = row->answerless.empty(),
                         .ground_truth_is_json = row->ground_truth_is_json};
    if (const Status usable = reward_.check_row(request); !usable.ok())
      return usable.with_context(row->where);
    return request;
  }

  void print(const std::string& where, const ExplainedScore& explained) {
    ++rows_;
    if (const std::optional<double> value = explained.value())
      sum_ += *value;
    else
      ++failed_;
    const std::string line =
        json_ ? json_line(explained_json(explained))
              : runtime::terminal_text(STDOUT_FILENO, explained_text(where, explained));
    std::cout << line << "\n";
  }

  RewardFunction& reward_;
  const RowMapping mapping_;
  const bool json_;
  std::int64_t rows_ = 0, failed_ = 0;
  double sum_ = 0.0;
};

int score_given(const RewardScoreOptions& options) {
  const Result<Config> config = load_reward_config(options);
  if (!config.ok()) return fail(config.status());
  Result<RowMapping> mapping = RowMapping::from_config(*config);
  if (!mapping.ok()) return fail(mapping.status());
  const Result<LengthPenalty> penalty = LengthPenalty::from_config(*config);
  if (!penalty.ok()) return fail(penalty.status());
  const auto source = open_rows(options.rows, {.split = options.split, .keep_unreadable = true});
  if (!source.ok()) return fail(source.status());
  auto reward = RewardFunction::from_config(*config, 1, /*start=*/true);
  if (!reward.ok()) return fail(reward.status());
  if (penalty->enabled)
    std::cerr << "note: what a training takes off for length is left out: it counts tokens\n";
  GivenResponses given(**reward, std::move(*mapping), options.json);
  while (true) {
    const auto block = (*source)->next();
    if (!block.ok()) return fail(block.status());
    if (block->empty()) break;
    given.add(*block);
  }
  if (given.rows() == 0) return fail(runtime::invalid_argument(options.rows + ": it has no rows"));
  if (!options.json && given.failed() < given.rows())
    std::cout << given.rows() - given.failed() << " scores, mean " << number_text(given.mean())
              << "\n";
  if (given.failed() == 0) return 0;
  return fail(Status(runtime::ErrorCode::kTaskFailed, std::to_string(given.failed()) + " of " +
                                                          std::to_string(given.rows()) +
                                                          " rows have no score"));
}

int reward_score(int argc, char** argv) {
  CLI::App app(
      "Scores responses that are there, without a model, and says what was compared: for looking "
      "for a mistake in a reward.",
      "starling reward score");
  app.footer(
      "Examples:\n"
      "  starling reward score answers.jsonl --reward rule=math\n"
      "  starling reward score answers.jsonl --json --reward "
      "custom_reward_function.path=reward.py\n"
      "  starling reward score runs/a/rollouts/12.jsonl data.columns.response=output "
      "data.columns.answer=gts --reward rule=gsm8k");
  RewardScoreOptions options;
  options.add_to(app);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  return score_given(options);
}

constexpr const char* kRewardUsage =
    "usage: starling reward score ROWS ...\n"
    "  score ROWS           scores of given responses, and what was compared\n"
    "`starling reward score --help` explains it\n";

}  // namespace

int reward_command(int argc, char** argv) {
  const std::string_view name = argc < 2 ? "" : argv[1];
  if (name == "score") return reward_score(argc - 1, argv + 1);
  const bool help = name == "--help" || name == "-h";
  if (!help && !name.empty())
    std::cerr << "error: no command 'reward "
              << runtime::terminal_text(STDERR_FILENO, std::string(name)) << "'\n";
  (help ? std::cout : std::cerr) << kRewardUsage;
  return help ? 0 : 2;
}

}  // namespace rl
