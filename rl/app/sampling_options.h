// The sampling options of `starling generate` that are more than a number, and what is printed of
// what they ask for.
#pragma once

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/rollout/request.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// As they are given; apply() makes them what the engine takes.
struct SamplingOptionTexts {
  std::vector<std::string> logit_biases;  // "13=-2.5"
  std::vector<std::string> bad_words;
  std::vector<std::string> bad_ids;  // "1,2,3"
  std::string early_stopping = "false";

  /// These, and those of `sampling` that need no more than to be read. Returns those of beam
  /// search, which a generation_config.json may say too.
  std::vector<const CLI::Option*> add_to(CLI::App& app, SamplingParams& sampling);

  BeamSearchParams::Stop stop() const;

  /// kInvalidArgument, with the option's name: cannot be understood, or needs a tokenizer that the
  /// model does not have.
  runtime::Status apply(const std::optional<Tokenizer>& tokenizer, SamplingParams& sampling) const;
};

/// The line that --json prints.
nlohmann::ordered_json completion_json(const Completion& completion, const Request& request,
                                       const std::string& text);

}  // namespace rl
