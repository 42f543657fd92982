#include "rl/data/sequence_options.h"

namespace rl {

runtime::Result<SequenceOptions> SequenceOptions::from_config(const Config& config) {
  ConfigReader read(config);
  SequenceOptions options;
  options.tokens_max = read.get_int("data.max_length");
  const std::string truncation = read.get_string("data.truncation");
  options.chat_template = read.find_string("model.custom_chat_template").value_or("");
  if (!read.status().ok()) return read.status();
  const runtime::Result<Truncation> cut = parse_truncation(truncation);
  if (!cut.ok()) return cut.status();
  options.truncation = *cut;
  const auto* variables = config.find("data.apply_chat_template_kwargs");
  if (variables != nullptr && variables->is_object()) options.template_variables = *variables;
  return options;
}

}  // namespace rl
