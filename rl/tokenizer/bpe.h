// Byte-pair encoding: a piece starts as characters (or bytes). The pair of neighbours whose merge
// was learned earliest is merged until no neighbours have a merge. Sennrich et al. 2016,
// arXiv:1508.07909.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/merges.h"
#include "rl/tokenizer/subword_model.h"
#include "rl/tokenizer/vocabulary.h"
#include "runtime/core/result.h"

namespace rl {

struct BpeOptions {
  bool pieces_are_bytes =
      false;  // the vocabulary spells bytes in GPT-2's characters, pieces are the raw bytes
  bool byte_fallback =
      false;  // characters without a token become the tokens <0x00> to <0xFF> of their bytes
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  bool fuse_unknown = false;   // neighbouring unknown characters become one unknown token
  std::optional<std::int32_t> unknown_id;  // without it unknown characters are dropped
  std::string continuing_prefix;           // before every symbol of a piece but the first
  std::string end_suffix;                  // after the last symbol of a piece
};

class Bpe final : public TokenModel {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options);

  std::string_view kind() const override { return "BPE"; }
  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch,
              std::vector<std::int32_t>& ids) const override;
  void encode_ranges(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                     std::vector<Piece>& ranges) const override;

 private:
  using Ids = std::vector<std::int32_t>;
  struct Scratch;

  // The symbols that a piece starts as, and on request how many bytes each stands for.
  struct Symbols {
    Ids ids;
    std::vector<std::uint32_t> lengths;
    bool with_lengths = false;

    void clear() {
      ids.clear();
      lengths.clear();
    }
    void add(std::int32_t id, std::size_t length) {
      ids.push_back(id);
      if (with_lengths) lengths.push_back(static_cast<std::uint32_t>(length));
    }
  };

  // An unknown symbol that waits until it is clear whether the next character joins it.
  struct Unknown {
    std::optional<std::int32_t> id;
    std::size_t length = 0;
  };

  std::string_view first_word(std::string_view piece) const;
  void split(std::string_view word, Scratch& scratch) const;
  bool find_whole(std::string_view piece, Symbols& symbols) const;
  void start_with_bytes(std::string_view piece, Symbols& symbols) const;
  void start_with_characters(std::string_view piece, Symbols& symbols) const;
  std::optional<std::int32_t> find_character(std::string_view character) const;
  bool start_with_fallback_bytes(std::string_view character, Symbols& symbols) const;
  void add_unknown(std::size_t length, Unknown& pending, Symbols& symbols) const;
  static void flush(Unknown& pending, Symbols& symbols);
  bool words_never_join() const;

  MergeTable merges_;
  BpeOptions options_;
  std::array<std::int32_t, 256>
      byte_ids_{};  // of single bytes (pieces_are_bytes) or ASCII characters; -1: none
  std::array<std::int32_t, 256> fallback_ids_{};  // of <0xNN>; -1: none
  bool split_words_ = false;  // no merge crosses the beginning of a word marked with U+2581
};

/// Errors name the merge or member: kInvalidArgument (a merge of tokens outside the vocabulary,
/// ...), kUnimplemented (dropout).
runtime::Result<std::unique_ptr<TokenModel>> bpe_from_json(const nlohmann::json& model,
                                                           bool pieces_are_bytes);

}  // namespace rl
