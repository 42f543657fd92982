// SentencePiece models to pipelines: as the sentencepiece library tokenizes, and with
// tokenizer_config.json next to them as transformers reads such a folder.
#include <algorithm>
#include <limits>
#include <utility>

#include "rl/tokenizer/bpe.h"
#include "rl/tokenizer/charsmap_normalizer.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/sentencepiece_model.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "rl/tokenizer/unigram.h"
#include "rl/tokenizer/vocabulary_files.h"
#include "rl/weights/mapped_file.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

using Type = SentencePiece::Type;

// Classes that read the model as it is; others move ids or add their own tokens.
constexpr std::string_view kPlainClasses[] = {"",
                                              "LlamaTokenizer",
                                              "CodeLlamaTokenizer",
                                              "GemmaTokenizer",
                                              "PreTrainedTokenizer",
                                              "TokenizersBackend"};

// ChatGLM2 and 3: a class that was never part of transformers. It has tokens behind those of the
// model, which begin every text and stand for roles.
constexpr std::string_view kChatGlmClass = "ChatGLMTokenizer";
constexpr std::string_view kChatGlmTokens[] = {"[MASK]",   "[gMASK]",       "[sMASK]",
                                               "sop",      "eop",           "<|system|>",
                                               "<|user|>", "<|assistant|>", "<|observation|>"};
constexpr std::string_view kChatGlmPrefix[] = {"[gMASK]", "sop"};

// Whether the text between two special tokens gets a space in front too, or only the beginning of
// the whole.
bool space_before_each_part(const SlowTokenizerFiles& files) {
  const json* legacy = json_member(files.config, "legacy");
  return legacy == nullptr || !legacy->is_boolean() || legacy->get<bool>();
}

Result<Vocabulary> make_vocabulary(const SentencePieceModel& model) {
  std::vector<std::pair<std::string_view, std::int64_t>> tokens;
  tokens.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces) {
    // The library refuses such a file as well: which of two equal pieces it would mean is not
    // defined.
    tokens.emplace_back(piece.text, static_cast<std::int64_t>(tokens.size()));
  }
  auto vocabulary = Vocabulary::make(tokens);
  if (!vocabulary.ok()) return vocabulary;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (*vocabulary->find(tokens[id].first) == static_cast<std::int32_t>(id)) continue;
    return runtime::invalid_argument("pieces[" + std::to_string(id) + "]: piece: \"" +
                                     std::string(tokens[id].first) + "\" is there twice");
  }
  return vocabulary;
}

// Tokens that are found before the model sees a text (or, the control symbols of a model without a
// tokenizer_config.json, that never are).
std::vector<AddedToken> marked_tokens(const SentencePieceModel& model, bool control_in_text) {
  std::vector<AddedToken> tokens;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    const bool symbol =
        piece.type == Type::kUserDefined && model.kind == SentencePieceModel::Kind::kBpe;
    if (piece.type != Type::kControl && piece.type != Type::kUnknown && !symbol) continue;
    AddedToken token;
    token.id = static_cast<std::int32_t>(id);
    token.content = piece.text;
    token.special = !symbol;
    token.normalized = symbol;  // as SentencePiece, which keeps them apart after normalizing
    token.in_text = symbol || control_in_text;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// ChatGLM's own tokens, and what else its class does: begin, end and unknown decode to nothing. In
// a text its tokens are found where added_tokens_decoder lists them or "encode_special_tokens" is
// true. Otherwise they are text like any other, so that a user cannot write them.
Status add_chatglm_tokens(const SlowTokenizerFiles& files, const Vocabulary& vocabulary,
                          std::vector<AddedToken>& tokens) {
  auto in_text = json_bool_or(files.config, "encode_special_tokens", false);
  if (!in_text.ok()) return in_text.status().with_context("tokenizer_config.json");
  for (AddedToken& token : tokens)
    token.silent = token.silent || (token.special && token.id < vocabulary.size());
  std::int32_t next = vocabulary.size();
  for (std::string_view content : kChatGlmTokens) {
    const std::int32_t id = next++;
    const auto known = std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& token) {
      return token.content == content || token.id == id;
    });
    if (known == tokens.end()) {
      AddedToken token;
      token.id = id;
      token.content = content;
      token.in_text = *in_text;
      tokens.push_back(std::move(token));
    } else if (known->content != content || known->id != id) {
      return runtime::invalid_argument("added token \"" + known->content + "\" has id " +
                                       std::to_string(known->id) + ", where " +
                                       std::string(kChatGlmClass) + " has \"" +
                                       std::string(content) + "\" at " + std::to_string(id));
    }
  }
  return {};
}

std::unique_ptr<Normalizer> make_normalizer(const SentencePieceModel& model, CharsMap charsmap,
                                            bool space_before) {
  SentencePieceNormalizerOptions options;
  options.charsmap = std::move(charsmap);
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kUserDefined) options.kept.emplace_back(piece.text);
  }
  options.add_dummy_prefix = space_before;
  options.remove_extra_whitespaces = model.remove_extra_whitespaces;
  options.escape_whitespaces = model.escape_whitespaces;
  options.whitespace_as_suffix = model.treat_whitespace_as_suffix;
  return make_sentencepiece_normalizer(std::move(options));
}

Result<std::unique_ptr<TokenModel>> make_bpe(const SentencePieceModel& model,
                                             Vocabulary vocabulary) {
  std::vector<double> scores;
  std::vector<bool> mergeable;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type == Type::kUnused) {
      return runtime::unimplemented("pieces[" + std::to_string(id) +
                                    "]: unused pieces of a BPE model are not supported");
    }
    scores.push_back(static_cast<double>(piece.score));
    mergeable.push_back(piece.type == Type::kNormal);
  }
  BpeOptions options;
  options.byte_fallback = model.byte_fallback;
  options.fuse_unknown = true;
  options.unknown_id = model.unk_id;
  MergeTable merges = make_merges_from_scores(vocabulary, scores, mergeable);
  return std::unique_ptr<TokenModel>(
      std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), std::move(options)));
}

std::unique_ptr<TokenModel> make_unigram(const SentencePieceModel& model, Vocabulary vocabulary) {
  float lowest = 0, highest = std::numeric_limits<float>::min();  // above any score, as in the
                                                                  // library: a symbol costs 0.1
  bool first = true;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != Type::kNormal) continue;
    lowest = first ? piece.score : std::min(lowest, piece.score);
    highest = std::max(highest, piece.score);
    first = false;
  }
  UnigramOptions options;
  options.unknown_id = model.unk_id;
  options.byte_fallback = model.byte_fallback;
  options.unknown_score = static_cast<double>(lowest - static_cast<float>(kUnigramUnknownPenalty));
  options.single_precision = true;
  std::vector<double> scores;
  for (const SentencePiece& piece : model.pieces) {
    // A user-defined symbol wins over any other way to spell it.
    const bool symbol = piece.type == Type::kUserDefined;
    scores.push_back(symbol ? static_cast<double>(static_cast<float>(piece.text.size()) * highest) -
                                  0.1
                            : static_cast<double>(piece.score));
    options.in_text.push_back(piece.type == Type::kNormal || symbol);
  }
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), std::move(options));
}

// The special tokens that the model itself names.
std::vector<SpecialTokenDefault> named_pieces(const SentencePieceModel& model) {
  const std::pair<const char*, std::int32_t> named[] = {{"bos_token", model.bos_id},
                                                        {"eos_token", model.eos_id},
                                                        {"unk_token", model.unk_id},
                                                        {"pad_token", model.pad_id}};
  std::vector<SpecialTokenDefault> defaults;
  for (const auto& [name, id] : named) {
    if (id >= 0) defaults.push_back({name, model.pieces[static_cast<std::size_t>(id)].text});
  }
  return defaults;
}

Status load_model(const SentencePieceModel& model, const SlowTokenizerFiles& files,
                  TokenizerPipeline& pipeline) {
  using Kind = SentencePieceModel::Kind;
  if (model.kind != Kind::kBpe && model.kind != Kind::kUnigram) {
    return runtime::unimplemented(std::string("trainer_spec: model_type ") +
                                  (model.kind == Kind::kWord ? "WORD" : "CHAR") +
                                  " is not supported");
  }
  auto vocabulary = make_vocabulary(model);
  if (!vocabulary.ok()) return vocabulary.status();
  auto charsmap = CharsMap::parse(model.precompiled_charsmap);
  if (!charsmap.ok())
    return charsmap.status().with_context("normalizer_spec: precompiled_charsmap");
  auto space_before = json_bool_or(files.config, "add_prefix_space", model.add_dummy_prefix);
  if (!space_before.ok()) return space_before.status().with_context("tokenizer_config.json");
  const bool chatglm = files.class_name == kChatGlmClass;
  const bool as_transformers = files.config.is_object() && !chatglm;
  auto added = slow_added_tokens(
      files, as_transformers ? named_pieces(model) : std::vector<SpecialTokenDefault>(),
      *vocabulary, marked_tokens(model, as_transformers));
  if (!added.ok()) return added.status();
  if (chatglm) {
    if (Status status = add_chatglm_tokens(files, *vocabulary, *added); !status.ok()) return status;
  }
  auto made = AddedTokens::make(std::move(*added), nullptr);
  if (!made.ok()) return made.status();
  pipeline.added_tokens = std::move(*made);

  const bool each_part = space_before_each_part(files);
  pipeline.normalizer = make_normalizer(model, std::move(*charsmap), *space_before && each_part);
  if (*space_before && !each_part) {
    auto metaspace = pre_tokenizer_from_json(
        {{"type", "Metaspace"}, {"prepend_scheme", "first"}, {"split", false}});
    if (!metaspace.ok()) return metaspace.status();
    pipeline.pre_tokenizer = std::move(*metaspace);
  }
  if (model.kind == Kind::kBpe) {
    auto bpe = make_bpe(model, std::move(*vocabulary));
    if (!bpe.ok()) return bpe.status();
    pipeline.model = std::move(*bpe);
  } else {
    pipeline.model = make_unigram(model, std::move(*vocabulary));
  }
  pipeline.decoder = make_sentencepiece_decoder(model.remove_extra_whitespaces ? INT64_MAX
                                                : *space_before                ? 1
                                                                               : 0);
  return {};
}

}  // namespace

Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_sentencepiece(
    std::string_view bytes, std::string_view name, const fs::path& folder) {
  SlowTokenizerFiles files;
  if (!folder.empty()) {
    auto read = read_slow_tokenizer_files(folder);
    if (!read.ok()) return read.status();
    files = std::move(*read);
  }
  const bool chatglm = files.class_name == kChatGlmClass;
  if (!chatglm && std::find(std::begin(kPlainClasses), std::end(kPlainClasses), files.class_name) ==
                      std::end(kPlainClasses)) {
    return runtime::unimplemented(std::string(name) + ": tokenizer_class " + files.class_name +
                                  " with a SentencePiece model is not supported; put the model's "
                                  "tokenizer.json in the folder");
  }
  auto model = parse_sentencepiece_model(bytes);
  if (!model.ok()) return model.status().with_context(name);
  auto pipeline = std::make_unique<TokenizerPipeline>();
  Status status = load_model(*model, files, *pipeline);
  if (!status.ok()) return status.with_context(name);
  std::vector<SpecialTokenDefault> defaults = named_pieces(*model);
  if (chatglm) {
    std::erase_if(defaults, [](const SpecialTokenDefault& one) {
      return std::string_view(one.name) == "bos_token" || std::string_view(one.name) == "pad_token";
    });
    if (model->unk_id >= 0)
      defaults.push_back(
          {"pad_token", model->pieces[static_cast<std::size_t>(model->unk_id)].text});
  }
  add_special_token_defaults(files, defaults, *pipeline);
  status = add_tokenizer_config(folder, files, *pipeline);
  if (!status.ok()) return status;
  const bool begins =
      files.class_name.ends_with("LlamaTokenizer") || files.class_name == "GemmaTokenizer";
  status = add_begin_and_end(files, begins, false, *pipeline).with_context(name);
  if (!status.ok()) return status;
  if (chatglm) {
    pipeline->post_processor.prefix.clear();
    for (std::string_view token : kChatGlmPrefix)
      pipeline->post_processor.prefix.push_back(*pipeline->find(token));
  }
  return pipeline;
}

}  // namespace rl
