// A SentencePiece model file: a protobuf message, of which the fields that tokenizing needs are
// read here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// One entry of the vocabulary; its id is its index.
struct SentencePiece {
  enum class Type : std::uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
  };
  std::string_view text;
  float score = 0;
  Type type = Type::kNormal;
};

/// A parsed model. Views of the bytes it was parsed from, which have to outlive it.
struct SentencePieceModel {
  enum class Kind : std::uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };
  std::vector<SentencePiece> pieces;

  // trainer_spec
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  std::int32_t unk_id = 0;
  std::int32_t bos_id = 1;  // negative: none
  std::int32_t eos_id = 2;
  std::int32_t pad_id = -1;

  // normalizer_spec
  std::string_view precompiled_charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

/// Errors name the field and what is wrong with it ("pieces[12].score: has wire type 0, not 5"):
/// kInvalidArgument (damaged, or no SentencePiece model at all). Memory in proportion to the bytes,
/// whatever they claim.
runtime::Result<SentencePieceModel> parse_sentencepiece_model(std::string_view bytes);

}  // namespace rl
