#include "rl/app/generate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "rl/app/command_line.h"
#include "rl/app/local_model.h"
#include "rl/app/prompt_input.h"
#include "rl/app/sampling_options.h"
#include "rl/data/prompt_builder.h"
#include "rl/rollout/generation_config.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/printable_text.h"

namespace rl {
namespace {

struct GenerateOptions {
  LocalModelOptions model;
  std::vector<std::string> prompts;
  std::vector<std::string> chats;
  std::vector<std::string> ids;
  SamplingParams sampling{.temperature = 0.0F, .max_new_tokens = 128};
  SamplingOptionTexts texts;
  std::int64_t n = 1;
  std::int64_t best_of = 0;
  bool json = false;
  bool ignore_generation_config = false;
  std::vector<const CLI::Option*>
      given;  // options that win over generation_config.json where they were given

  void add_to(CLI::App& app) {
    model.add_to(app);
    app.add_option_function<std::string>(
           "--weights",
           [this](const std::string& name) {
             model.weights = name == "int8" ? EngineWeights::kInt8 : EngineWeights::kFp32;
           },
           "fp32, or int8: linear layers in 8 bits, faster and a little different")
        ->check(CLI::IsMember({"fp32", "int8"}))
        ->type_name("TEXT")
        ->default_str("fp32");
    app.add_option("--prompt", prompts, "text to continue (repeatable)");
    app.add_option("--chat", chats,
                   "a user's message, put into the model's chat template (repeatable)");
    app.add_option("--ids", ids, "token ids to continue, as 1,2,3 (repeatable)");
    given = {
        app.add_option("--max-new-tokens", sampling.max_new_tokens, "stop after this many tokens")
            ->capture_default_str(),
        app.add_option("--min-new-tokens", sampling.min_new_tokens,
                       "do not stop before this many tokens")
            ->capture_default_str(),
        app.add_option("--temperature", sampling.temperature, "0: always the likeliest token")
            ->capture_default_str(),
        app.add_option("--top-p", sampling.top_p,
                       "sample from the likeliest tokens that reach this probability")
            ->capture_default_str(),
        app.add_option("--top-k", sampling.top_k, "sample from the k likeliest tokens; 0: all")
            ->capture_default_str(),
        app.add_option(
               "--min-p", sampling.min_p,
               "sample from tokens at least this fraction as likely as the likeliest; 0: all")
            ->capture_default_str(),
        app.add_option("--repetition-penalty", sampling.repetition_penalty,
                       "above 1: tokens that were there before become less likely")
            ->capture_default_str()};
    app.add_flag("--ignore-generation-config", ignore_generation_config,
                 "use the defaults above, not what the model's generation_config.json says of them "
                 "(an option that is given wins in any case)");
    app.add_option("--seed", sampling.seed,
                   "of the sampling; a prompt gives the same answer wherever it stands")
        ->check(whole_number_from(0))
        ->capture_default_str();
    app.add_option("--n", n, "completions per prompt")->capture_default_str();
    app.add_option("--best-of", best_of,
                   "generate N per prompt, and print the --n with the highest mean log-probability")
        ->capture_default_str();
    app.add_option("--stop-id", sampling.stop_ids,
                   "a token id to stop at besides the model's own (repeatable)");
    app.add_flag("--ignore-eos", sampling.ignore_eos,
                 "do not stop at the model's end-of-sequence tokens");
    const std::vector<const CLI::Option*> beams = texts.add_to(app, sampling);
    given.insert(given.end(), beams.begin(), beams.end());
    app.add_flag("--json", json,
                 "one JSON line per completion: prompt_ids, ids, text, logprobs, finish_reason, "
                 "and what else was asked for");
  }

  bool is_given(const std::string& name) const {
    return std::any_of(given.begin(), given.end(), [&](const CLI::Option* option) {
      return option->check_name(name) && option->count() > 0;
    });
  }
};

// The sampling that the model's generation_config.json asks for, but for what was given on the
// command line.
runtime::Result<SamplingParams> sampling_params(const GenerateOptions& options,
                                                const std::filesystem::path& model) {
  if (options.ignore_generation_config) return options.sampling;
  auto config = GenerationConfig::load(model);
  if (!config.ok()) return config.status();
  if (!config->unsupported.empty()) {
    std::string all;
    for (const std::string& one : config->unsupported) all += (all.empty() ? "" : ", ") + one;
    return runtime::unimplemented(
        model.string() + ": generation_config.json: " + all +
        ", which is not supported; --ignore-generation-config generates without");
  }
  for (const std::string& key : config->unknown)
    std::cerr << "note: generation_config.json: "
              << (key == kNumReturnSequences ? key + " is passed over: --n says how many"
                                             : "unknown key " + key + " is passed over")
              << "\n";
  const SamplingParams& flags = options.sampling;
  SamplingParams sampling = config->apply(flags);
  if (options.is_given("--max-new-tokens")) sampling.max_new_tokens = flags.max_new_tokens;
  if (options.is_given("--min-new-tokens")) sampling.min_new_tokens = flags.min_new_tokens;
  if (options.is_given("--temperature")) sampling.temperature = flags.temperature;
  if (options.is_given("--top-p")) sampling.top_p = flags.top_p;
  if (options.is_given("--top-k")) sampling.top_k = flags.top_k;
  if (options.is_given("--min-p")) sampling.min_p = flags.min_p;
  if (options.is_given("--repetition-penalty"))
    sampling.repetition_penalty = flags.repetition_penalty;
  if (options.is_given("--beams")) sampling.beam.width = flags.beam.width;
  if (options.is_given("--length-penalty"))
    sampling.beam.length_penalty = flags.beam.length_penalty;
  if (options.is_given("--early-stopping"))
    sampling.beam.early_stopping = flags.beam.early_stopping;
  return sampling;
}

// From the command line, else from stdin.
runtime::Result<std::vector<PromptInput>> collect_prompts(const GenerateOptions& options) {
  std::vector<PromptInput> prompts;
  for (const std::string& text : options.prompts)
    prompts.push_back({.prompt = text, .where = "--prompt"});
  for (const std::string& text : options.chats)
    prompts.push_back({.prompt = single_message(text), .where = "--chat"});
  for (const std::string& text : options.ids) {
    auto ids = parse_ids(text);
    if (!ids.ok()) return ids.status().with_context("--ids");
    prompts.push_back({.prompt = std::move(*ids), .where = "--ids"});
  }
  if (!prompts.empty()) return prompts;
  if (::isatty(STDIN_FILENO) == 1)
    return runtime::invalid_argument(
        "nothing to complete; give --prompt, --chat, --ids or JSON lines on stdin");
  return read_prompt_rows(std::cin, "stdin");
}

// The model's tokenizer, or none where only ids are given and the folder has no tokenizer.
runtime::Result<std::optional<Tokenizer>> load_tokenizer(const std::string& model,
                                                         const std::vector<PromptInput>& prompts) {
  auto tokenizer = Tokenizer::load(model);
  if (tokenizer.ok()) return std::optional<Tokenizer>(std::move(*tokenizer));
  const bool only_ids = std::all_of(prompts.begin(), prompts.end(),
                                    [](const PromptInput& prompt) { return prompt.is_ids(); });
  if (only_ids && tokenizer.status().code() == runtime::ErrorCode::kNotFound)
    return std::optional<Tokenizer>();
  return tokenizer.status();
}

/// Says it where the model does not read the row's tools.
void note_unread_tools(const PromptInput& prompt, const PromptBuilder* builder,
                       const DataRow& row) {
  if (prompt.tools.empty()) return;
  const char* why = nullptr;
  if (!prompt.is_chat()) {
    why = "only \"messages\" and \"chat\" go through the model's chat template";
  } else {
    DataRow toolless = row;
    toolless.tools = nullptr;
    const auto with = builder->text(row), without = builder->text(toolless);
    if (with.ok() && without.ok() && *with == *without)
      why = "the model's chat template does not write them";
  }
  if (why != nullptr)
    std::cerr << "note: " << prompt.where << ": \"tools\" are not read: " << why << "\n";
}

runtime::Result<std::vector<Request>> make_generate_requests(
    const GenerateOptions& options, const std::vector<PromptInput>& prompts,
    const std::optional<Tokenizer>& tokenizer) {
  std::optional<PromptBuilder> builder;
  if (tokenizer) {
    PromptOptions unlimited;
    unlimited.prompt_tokens_max = std::numeric_limits<std::int64_t>::max();
    auto created = PromptBuilder::create(*tokenizer, unlimited);
    if (!created.ok()) return created.status();
    builder = std::move(*created);
  }
  std::vector<Request> requests;
  for (const PromptInput& prompt : prompts) {
    Request request{
        .prompt_ids = {}, .n = options.n, .best_of = options.best_of, .sampling = options.sampling};
    DataRow row;
    row.where = prompt.where;
    row.tools = prompt.tools;
    if (prompt.is_ids()) {
      request.prompt_ids = std::get<0>(prompt.prompt);
    } else {
      if (const std::string* text = std::get_if<std::string>(&prompt.prompt))
        row.prompt = *text;
      else
        row.prompt = std::get<2>(prompt.prompt);
      auto ids = builder->ids(row);
      if (!ids.ok()) return ids.status();
      request.prompt_ids = std::move(*ids);
    }
    note_unread_tools(prompt, builder ? &*builder : nullptr, row);
    requests.push_back(std::move(request));
  }
  return requests;
}

void print_completion(const Completion& completion, const Request& request,
                      const std::optional<Tokenizer>& tokenizer, bool json) {
  std::string text;
  if (!request.sampling.stop_strings.empty())
    text = completion.text;
  else if (tokenizer)
    text = tokenizer->decode(completion.ids, /*skip_special_tokens=*/true);
  if (json) {
    std::cout << completion_json(completion, request, text).dump() << '\n';
  } else if (tokenizer) {
    std::cout << runtime::terminal_text(STDOUT_FILENO, text) << '\n';
  } else {
    for (std::size_t i = 0; i < completion.ids.size(); ++i)
      std::cout << (i == 0 ? "" : ",") << completion.ids[i];
    std::cout << '\n';
  }
}

int generate(GenerateOptions options) {
  options.sampling.beam.early_stopping = options.texts.stop();
  if (runtime::Status status = options.sampling.validate(); !status.ok()) return fail(status);
  auto prompts = collect_prompts(options);
  if (!prompts.ok()) return fail(prompts.status());
  auto path = options.model.source.locate(HubNeed::kModel);
  if (!path.ok()) return fail(path.status());
  auto sampling = sampling_params(options, *path);
  if (!sampling.ok()) return fail(sampling.status());
  if (runtime::Status status = sampling->validate(); !status.ok()) return fail(status);
  options.sampling = *sampling;
  auto tokenizer = load_tokenizer(*path, *prompts);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  if (runtime::Status status = options.texts.apply(*tokenizer, options.sampling); !status.ok())
    return fail(status);
  auto requests = make_generate_requests(options, *prompts, *tokenizer);
  if (!requests.ok()) return fail(requests.status());
  auto model = LocalModel::load(*path, options.model, *tokenizer);
  if (!model.ok()) return fail(model.status());
  const bool good = model->run(
      *requests, "generating", [&](std::size_t i) { return (*prompts)[i].where; },
      [&](const Completion& completion) {
        print_completion(completion, (*requests)[completion.request], *tokenizer, options.json);
      });
  return good ? 0 : 1;
}

}  // namespace

int generate_command(int argc, char** argv) {
  CLI::App app(
      "Completions of prompts, from the command line or as JSON lines on stdin: {\"prompt\":text}, "
      "{\"chat\":text}, "
      "{\"messages\":[...]} or {\"ids\":[...]}. \"tools\" of messages go to the chat template.",
      "starling generate");
  GenerateOptions options;
  options.add_to(app);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  return generate(options);
}

}  // namespace rl
