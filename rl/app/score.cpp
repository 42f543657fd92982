#include "rl/app/score.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "rl/app/command_line.h"
#include "rl/app/local_model.h"
#include "rl/app/prompt_input.h"

namespace rl {

int score_command(int argc, char** argv) {
  CLI::App app(
      "Log-probabilities of tokens: JSON lines {\"ids\":[...]} in, {\"token_logprobs\":[...]} out.",
      "starling score");
  LocalModelOptions options;
  options.add_to(app);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;

  auto rows = read_prompt_rows(std::cin, "stdin");
  if (!rows.ok()) return fail(rows.status());
  std::vector<Request> requests;
  for (const PromptInput& row : *rows) {
    if (!row.is_ids())
      return fail(runtime::invalid_argument(
          row.where + ": no \"ids\"; starling tokenize makes them from text"));
    Request request{.prompt_ids = std::get<0>(row.prompt)};
    request.sampling.max_new_tokens = 0;
    request.sampling.prompt_logprobs = true;
    requests.push_back(std::move(request));
  }
  auto path = options.source.locate(HubNeed::kModel);
  if (!path.ok()) return fail(path.status());
  auto model = LocalModel::load(*path, options);
  if (!model.ok()) return fail(model.status());
  const bool good = model->run(
      requests, "scoring", [&](std::size_t i) { return (*rows)[i].where; },
      [](const Completion& completion) {
        std::cout << nlohmann::ordered_json{{"token_logprobs", completion.prompt_logprobs}}.dump()
                  << '\n';
      });
  return good ? 0 : 1;
}

}  // namespace rl
