// Unicode's normal forms, character by character: what replaces what.
#pragma once

#include <string_view>
#include <vector>

#include "rl/tokenizer/aligned_text.h"

namespace rl {

/// How valid `text` becomes its normal form: D, KD (`compatible`), C or KC (`compose`).
std::vector<CharacterChange> normal_form_changes(std::string_view text, bool compatible,
                                                 bool compose);

/// A stretch of text that is normalized by itself, or a character that stays as it is: see
/// is_inert().
struct NormalizedPart {
  std::string_view text;
  bool inert = false;
};

std::vector<NormalizedPart> parts_to_normalize(std::string_view text);

}  // namespace rl
