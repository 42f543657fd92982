#include "rl/app/eval.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rl/app/checkpoint_folder.h"
#include "rl/app/command_line.h"
#include "rl/app/eval_text.h"
#include "rl/app/local_model.h"
#include "rl/app/model_option.h"
#include "rl/config/config.h"
#include "rl/config/number_text.h"
#include "rl/data/dataset.h"
#include "rl/data/prompt_builder.h"
#include "rl/feed/data_warnings.h"
#include "rl/model/lora_config.h"
#include "rl/report/evaluation_page.h"
#include "rl/reward/answer.h"
#include "rl/reward/reward_function.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/printable_text.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

struct EvalOptions {
  LocalModelOptions model;
  std::string data;
  std::string config;
  std::vector<std::string> rewards;
  std::vector<std::string> overrides;
  std::int64_t n = 1;
  std::int64_t limit = 0;
  double right_from = 1.0;
  std::optional<float> temperature;
  std::optional<std::int64_t> max_tokens;
  SamplingParams sampling;
  std::string out;
  bool json = false;

  void add_to(CLI::App& app) {
    model.add_to(app);
    app.add_option("--data", data,
                   "a file with prompts and answers, or toy, the built-in task (default: "
                   "data.val_files of the configuration)")
        ->type_name("FILE");
    app.add_option("--config", config, "the YAML file of a run or recipe: its data.* and reward.*")
        ->type_name("FILE");
    app.add_option("--reward", rewards,
                   "how to score: rule=gsm8k is reward.rule=gsm8k (repeatable; default: as "
                   "data_source says)")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--right-from", right_from, "the score from which an answer counts as right")
        ->capture_default_str();
    app.add_option("--n", n, "answers per prompt")
        ->check(whole_number_from(1))
        ->capture_default_str();
    app.add_option("--limit", limit, "only the first N prompts")->check(whole_number_from(1));
    app.add_option("--temperature", temperature,
                   "0: always the likeliest token (default: 0 with --n 1, otherwise 1)");
    app.add_option("--top-p", sampling.top_p,
                   "sample from the likeliest tokens that reach this probability")
        ->capture_default_str();
    app.add_option("--top-k", sampling.top_k, "sample from the k likeliest tokens; 0: all")
        ->capture_default_str();
    app.add_option("--max-tokens", max_tokens,
                   "of an answer (default: data.max_response_length, which is 512)");
    app.add_option("--seed", sampling.seed, "of the sampling")
        ->check(whole_number_from(0))
        ->capture_default_str();
    app.add_option("--out", out, "write a page with all answers")->type_name("FILE.html");
    app.add_flag("--json", json, "print the figures as JSON");
    app.add_option("overrides", overrides,
                   "further keys of the configuration: data.prompt_key=question, say")
        ->type_name("OVERRIDE");
  }
};

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 2) text.insert(at, "\\");
  return "'" + text + "'";
}

Result<Config> load_config(const EvalOptions& options) {
  ConfigSources sources;
  if (!options.config.empty()) sources.file = options.config;
  if (options.data == "toy") {
    sources.overrides = {"data.dataset_name=toy", "data.val_files=null"};
  } else if (!options.data.empty()) {
    sources.overrides = {"data.val_files=" + quoted(options.data)};
  }
  if (options.limit > 0)
    sources.overrides.push_back("data.val_max_samples=" + std::to_string(options.limit));
  sources.overrides.insert(sources.overrides.end(), options.overrides.begin(),
                           options.overrides.end());
  for (const std::string& reward : options.rewards)
    sources.overrides.push_back(reward_override(reward));
  return Config::load(sources);
}

Result<Dataset> load_data(const Config& config) {
  const auto options = dataset_options(config, Split::kValidation);
  if (!options.ok()) return options.status();
  if (!*options)
    return runtime::not_found(
        "no data to evaluate on: give --data FILE, or --config with data.val_files in it");
  return Dataset::load(**options);
}

// A checkpoint is looked into: it holds a model, or an adapter that says which model it is for.
Result<fs::path> find_evaluated_model(LocalModelOptions& options) {
  std::error_code ignored;
  if (!fs::is_directory(options.source.model, ignored))
    return options.source.locate(HubNeed::kModel);
  const auto checkpoint = find_checkpoint(options.source.model);
  if (!checkpoint.ok()) return checkpoint.status();
  if (const auto model = model_in_checkpoint(*checkpoint)) return *model;
  const auto adapter = adapter_in_checkpoint(*checkpoint);
  if (!adapter)
    return runtime::not_found(options.source.model +
                              ": no model there (a run's folder, a global_step_N, or a folder with "
                              "config.json or adapter_config.json)");
  const Result<LoraConfig> config = LoraConfig::load(*adapter);
  if (!config.ok()) return config.status();
  if (config->base_model.empty())
    return runtime::invalid_argument(
        adapter->string() + " does not name its base model; give --model MODEL --adapter " +
        adapter->string());
  auto base = locate_with_progress(config->base_model, "", HubNeed::kModel);
  if (!base.ok())
    return base.status().with_context("the model that " + adapter->string() +
                                      " is for (--model MODEL --adapter DIR names another place)");
  options.adapter = adapter->string();
  return base;
}

Result<PromptBuilder> prompt_builder(const Config& config, const Tokenizer& tokenizer) {
  auto options = PromptOptions::from_config(config);
  if (!options.ok()) return options.status();
  if (!config.is_set("data.max_prompt_length"))
    options->prompt_tokens_max = std::numeric_limits<std::int64_t>::max();
  return PromptBuilder::create(tokenizer, *options);
}

// Prompts as they are before they are answered: every answer is an error until it comes.
Result<std::vector<EvaluatedPrompt>> make_prompts(const Dataset& data, const PromptBuilder& builder,
                                                  std::int64_t n) {
  std::vector<EvaluatedPrompt> prompts;
  for (const DataRow& row : data.rows()) {
    auto text = builder.text(row);
    if (!text.ok()) return text.status().with_context(row.where);
    EvaluatedPrompt prompt{.prompt = std::move(*text),
                           .expected = row.ground_truth,
                           .data_source = row.data_source,
                           .where = row.where,
                           .answers = {}};
    prompt.answers.resize(static_cast<std::size_t>(n));
    for (EvaluatedAnswer& answer : prompt.answers) answer.error = "no answer came";
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<Request>> make_eval_requests(const Dataset& data, const PromptBuilder& builder,
                                                const SamplingParams& sampling, std::int64_t n) {
  std::vector<Request> requests;
  for (const DataRow& row : data.rows()) {
    auto ids = builder.ids(row);
    if (!ids.ok()) return ids.status();
    requests.push_back({.prompt_ids = std::move(*ids), .n = n, .sampling = sampling});
  }
  return requests;
}

Status score(const Dataset& data, RewardFunction& reward, double right_from,
             std::vector<EvaluatedPrompt>& prompts) {
  std::vector<ScoreRequest> requests;
  std::vector<EvaluatedAnswer*> answers;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const DataRow& row = data.rows()[i];
    for (EvaluatedAnswer& answer : prompts[i].answers) {
      if (!answer.error.empty()) continue;
      requests.push_back({.data_source = row.data_source,
                          .response = answer.text,
                          .ground_truth = row.ground_truth,
                          .extra_info = row.extra.is_null() ? std::string() : row.extra.dump(),
                          .where = row.where,
                          .has_ground_truth = row.answerless.empty(),
                          .ground_truth_is_json = row.ground_truth_is_json});
      answers.push_back(&answer);
    }
  }
  if (requests.empty()) return {};
  // Lengths of nothing: what a training takes off for long answers says nothing about whether they
  // are right.
  const std::vector<std::int64_t> lengths(requests.size(), 0);
  const Result<RewardReport> report = reward.score(requests, lengths);
  if (!report.ok()) return report.status();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answers[i]->score = report->scores[i];
    if (report->left_out[i] != 0)
      answers[i]->error = "it could not be scored";
    else
      answers[i]->right = report->scores[i] >= right_from - 1e-9;
  }
  return {};
}

Status check_rows(const Dataset& data, const RewardFunction& reward) {
  for (const DataRow& row : data.rows()) {
    const Status usable = reward.check_row({.data_source = row.data_source,
                                            .response = {},
                                            .ground_truth = row.ground_truth,
                                            .extra_info = {},
                                            .where = row.where,
                                            .ground_truth_is_json = row.ground_truth_is_json});
    if (!usable.ok()) return usable.with_context(row.where);
  }
  return {};
}

// What the options leave to the configuration.
Status complete_sampling(const Config& config, EvalOptions& options) {
  const Result<std::int64_t> response_max = config.get_int("data.max_response_length");
  if (!response_max.ok()) return response_max.status();
  options.sampling.max_new_tokens = options.max_tokens.value_or(*response_max);
  options.sampling.temperature = options.temperature.value_or(options.n == 1 ? 0.0F : 1.0F);
  return options.sampling.validate();
}

// The prompts of the data with the model's answers, which have no scores yet.
Result<std::vector<EvaluatedPrompt>> answered_prompts(const Config& config, const Dataset& data,
                                                      EvalOptions& options) {
  const auto path = find_evaluated_model(options.model);
  if (!path.ok()) return path.status();
  const auto tokenizer = Tokenizer::load(*path);
  if (!tokenizer.ok()) return tokenizer.status();
  const auto builder = prompt_builder(config, *tokenizer);
  if (!builder.ok()) return builder.status();
  std::vector<std::string> warnings =
      data_warnings(data, DataWarningOptions::of_prompts(config, *tokenizer));
  add_warnings(
      unwritten_fields(data, [&](const DataRow& row) { return builder->unwritten_fields(row); }),
      warnings);
  for (const std::string& warning : warnings)
    std::cerr << "warning: " << runtime::terminal_text(STDERR_FILENO, warning) << "\n";
  auto prompts = make_prompts(data, *builder, options.n);
  if (!prompts.ok()) return prompts;
  const auto requests = make_eval_requests(data, *builder, options.sampling, options.n);
  if (!requests.ok()) return requests.status();
  auto model = LocalModel::load(*path, options.model, *tokenizer);
  if (!model.ok()) return model.status();
  model->run(
      *requests, "answering", [&](std::size_t i) { return (*prompts)[i].where; },
      [&](const Completion& completion) {
        EvaluatedAnswer& answer =
            (*prompts)[completion.request].answers[static_cast<std::size_t>(completion.sample)];
        answer.text = tokenizer->decode(completion.ids, /*skip_special_tokens=*/true);
        answer.answer = answer_of(answer.text);
        answer.cut = completion.finish_reason == FinishReason::kLength;
        answer.tokens = static_cast<std::int64_t>(completion.ids.size());
        answer.error.clear();
      });
  return prompts;
}

// The page and what is printed; `name`: the model as it was given.
Status show(const EvalOptions& options, const std::string& name,
            const std::vector<EvaluatedPrompt>& prompts) {
  const std::vector<EvaluationSummary> summaries = summarize(prompts);
  if (!options.out.empty()) {
    const EvaluationPageOptions page{
        .title = name,
        .facts = {{"prompts", std::to_string(prompts.size())},
                  {"answers each", std::to_string(options.n)},
                  {"temperature", number_text(options.sampling.temperature)},
                  {"tokens at most", std::to_string(options.sampling.max_new_tokens)},
                  {"seed", std::to_string(options.sampling.seed)}}};
    if (const Status written =
            write_file_atomically(options.out, evaluation_html(summaries, prompts, page));
        !written.ok())
      return written;
  }
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"model", name},
                                        {"n", options.n},
                                        {"temperature", options.sampling.temperature},
                                        {"max_tokens", options.sampling.max_new_tokens},
                                        {"seed", options.sampling.seed},
                                        {"results", summary_json(summaries)}}
                     .dump()
              << "\n";
  } else {
    std::cout << runtime::terminal_text(STDOUT_FILENO, summary_text(summaries));
    if (!options.out.empty()) std::cout << "\n" << options.out << "\n";
  }
  return {};
}

int eval(EvalOptions options) {
  const Result<Config> config = load_config(options);
  if (!config.ok()) return fail(config.status());
  const Result<Dataset> data = load_data(*config);
  if (!data.ok()) return fail(data.status());
  auto reward = RewardFunction::from_config(*config, 1, /*start=*/true);
  if (!reward.ok()) return fail(reward.status());
  if (const Status usable = check_rows(*data, **reward); !usable.ok()) return fail(usable);
  if (const Status valid = complete_sampling(*config, options); !valid.ok()) return fail(valid);
  const std::string name = options.model.source.model;
  auto prompts = answered_prompts(*config, *data, options);
  if (!prompts.ok()) return fail(prompts.status());
  if (const Status scored = score(*data, **reward, options.right_from, *prompts); !scored.ok())
    return fail(scored);
  if (const Status shown = show(options, name, *prompts); !shown.ok()) return fail(shown);
  std::int64_t errors = 0;
  for (const EvaluatedPrompt& prompt : *prompts)
    errors += std::count_if(prompt.answers.begin(), prompt.answers.end(),
                            [](const EvaluatedAnswer& answer) { return !answer.error.empty(); });
  if (errors > 0)
    return fail(Status(runtime::ErrorCode::kTaskFailed,
                       std::to_string(errors) + " answers have no score; they count as wrong"));
  return 0;
}

}  // namespace

int eval_command(int argc, char** argv) {
  CLI::App app(
      "Lets a model answer prompts and scores its answers: the share of right ones, pass@k and "
      "majority votes, with confidence intervals.",
      "starling eval");
  app.footer(
      "Example:\n  starling eval --model checkpoints/arithmetic --data arithmetic_data/test.jsonl "
      "--reward rule=number --n 8 --out answers.html");
  EvalOptions options;
  options.add_to(app);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  return eval(std::move(options));
}

}  // namespace rl
