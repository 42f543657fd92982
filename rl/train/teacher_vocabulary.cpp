#include "rl/train/teacher_vocabulary.h"

#include <algorithm>
#include <string>

#include "rl/text/tokenizer.h"

namespace rl {

using runtime::Result;

runtime::Status check_same_vocabulary(const std::filesystem::path& student, const std::filesystem::path& teacher) {
  const Result<Tokenizer> own = Tokenizer::load(student);
  if (!own.ok()) return own.status();
  const Result<Tokenizer> others = Tokenizer::load(teacher);
  if (!others.ok()) return others.status();
  for (std::int32_t id = 0; id < std::max(own->vocab_size(), others->vocab_size()); ++id) {
    if (own->id_to_token(id) == others->id_to_token(id)) continue;
    return runtime::invalid_argument("token " + std::to_string(id) + " is '" + others->id_to_token(id) + "' in the teacher " + teacher.string() + " and '" + own->id_to_token(id) + "' in the student " +
                                     student.string() + ": distributions can be compared over one vocabulary only; take a teacher of the student's family");
  }
  return {};
}

}  // namespace rl
