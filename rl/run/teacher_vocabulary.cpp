#include "rl/run/teacher_vocabulary.h"

#include <algorithm>

#include "rl/model/model_config.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status check_same_vocabulary(const std::filesystem::path& student,
                             const std::filesystem::path& teacher) {
  const Result<Tokenizer> own = Tokenizer::load(student);
  if (!own.ok()) return own.status();
  const Result<Tokenizer> others = Tokenizer::load(teacher);
  if (!others.ok()) return others.status();
  for (std::int32_t id = 0; id < std::max(own->vocab_size(), others->vocab_size()); ++id) {
    if (own->id_to_token(id) == others->id_to_token(id)) continue;
    return runtime::invalid_argument("token " + std::to_string(id) + " is '" +
                                     others->id_to_token(id) + "' in the teacher " +
                                     teacher.string() + " and '" + own->id_to_token(id) +
                                     "' in the student " + student.string() +
                                     ": distributions can be compared over one vocabulary only; "
                                     "take a teacher of the student's family");
  }
  return {};
}

Status check_reads_vocabulary(const std::filesystem::path& policy,
                              const std::filesystem::path& reader, const std::string& role) {
  if (policy == reader) return {};
  const Result<Tokenizer> own = Tokenizer::load(policy);
  if (!own.ok()) return own.status();
  const std::string why = ": the " + role + " reads the tokens that the policy writes; take a " +
                          role + " of the policy's family";
  const Result<Tokenizer> others = Tokenizer::load(reader);
  if (!others.ok() && others.status().code() != runtime::ErrorCode::kNotFound)
    return others.status();
  for (std::int32_t id = 0; others.ok() && id < own->vocab_size(); ++id) {
    const std::string token = own->id_to_token(id);
    if (token.empty() || token == others->id_to_token(id)) continue;
    if (own->is_special(id) && others->is_special(id))
      continue;  // families rename what they had reserved
    return runtime::invalid_argument(
        "token " + std::to_string(id) + " is '" + others->id_to_token(id) + "' in the " + role +
        " " + reader.string() + " and '" + token + "' in the policy " + policy.string() + why);
  }
  const Result<ModelConfig> config = ModelConfig::load(reader);
  if (!config.ok()) return config.status();
  if (config->vocab_size >= own->vocab_size()) return {};
  return runtime::invalid_argument("the " + role + " " + reader.string() + " has embeddings for " +
                                   std::to_string(config->vocab_size) +
                                   " tokens, and the policy's tokenizer has " +
                                   std::to_string(own->vocab_size()) + why);
}

}  // namespace rl
