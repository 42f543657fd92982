#include "rl/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/pattern.h"
#include "rl/tokenizer/scripts.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

void PieceList::reset(std::string_view whole, bool starts_original) {
  text = whole;
  at_start = starts_original;
  aligned = false;
  pieces.clear();
  if (!whole.empty()) pieces.push_back({0, static_cast<std::uint32_t>(whole.size())});
}

namespace {

using PreTokenizerResult = Result<std::unique_ptr<PreTokenizer>>;

// What becomes of the text that a splitter matches.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Result<Behavior> behavior_from_json(const json& component, std::string_view otherwise) {
  auto name = json_string_or(component, "behavior", otherwise);
  if (!name.ok()) return name.status();
  if (*name == "Removed") return Behavior::kRemoved;
  if (*name == "Isolated") return Behavior::kIsolated;
  if (*name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (*name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (*name == "Contiguous") return Behavior::kContiguous;
  return runtime::unimplemented("split behavior " + std::string(*name) + " is not supported");
}

// Receives the alternating matched and unmatched stretches of one piece and appends pieces as the
// behaviour says.
class Splitter {
 public:
  Splitter(Behavior behavior, std::vector<Piece>& out)
      : behavior_(behavior), out_(out), first_(out.size()) {}

  void add(std::uint32_t begin, std::uint32_t end, bool matched) {
    if (begin == end) return;
    switch (behavior_) {
      case Behavior::kIsolated: out_.push_back({begin, end}); break;
      case Behavior::kRemoved:
        if (!matched) out_.push_back({begin, end});
        break;
      case Behavior::kMergedWithPrevious:
        if (matched && !previous_matched_ && out_.size() > first_) {
          out_.back().end = end;
        } else {
          out_.push_back({begin, end});
        }
        break;
      case Behavior::kMergedWithNext:
        // Of several matches in a row only the last joins the text behind it.
        if (!matched && previous_matched_) {
          out_.back().end = end;
        } else {
          out_.push_back({begin, end});
        }
        break;
      case Behavior::kContiguous:
        if (matched == previous_matched_ && out_.size() > first_) {
          out_.back().end = end;
        } else {
          out_.push_back({begin, end});
        }
        break;
    }
    previous_matched_ = matched;
  }

 private:
  Behavior behavior_;
  std::vector<Piece>& out_;
  std::size_t first_;
  bool previous_matched_ = false;
};

// Replaces the pieces by what `split(piece, out)` makes of each.
template <class Split>
Status split_pieces(PieceList& list, Split split) {
  list.next.clear();
  for (const Piece& piece : list.pieces) {
    Status status = split(piece, list.next);
    if (!status.ok()) return status;
  }
  if (!list.pieces.empty() &&
      (list.next.empty() || list.next.front().begin != list.pieces.front().begin)) {
    list.at_start = false;  // the beginning was removed
  }
  list.pieces.swap(list.next);
  return {};
}

// What becomes of the text of the pieces, bit by bit.
class PieceWriter {
 public:
  explicit PieceWriter(PieceList& list) : list_(list), out_(list.rewriting) {
    out_.clear();
    list.rewriting_origins.clear();
  }

  // The old text's bytes [begin, end) as they are.
  void copy(std::size_t begin, std::size_t end) {
    out_.append(list_.text, begin, end - begin);
    if (list_.aligned) {
      const auto origins = list_.origins.begin();
      list_.rewriting_origins.insert(list_.rewriting_origins.end(),
                                     origins + static_cast<std::ptrdiff_t>(begin),
                                     origins + static_cast<std::ptrdiff_t>(end));
    }
  }

  // New text, which comes from where the old text's byte `at` does.
  void add(std::string_view text, std::size_t at) {
    out_ += text;
    if (list_.aligned)
      list_.rewriting_origins.insert(list_.rewriting_origins.end(), text.size(), list_.origins[at]);
  }

 private:
  PieceList& list_;
  std::string& out_;
};

// Replaces the text of the pieces by what `rewrite(piece, is the first of the original, writer)`
// writes for each.
template <class Rewrite>
void rewrite_pieces(PieceList& list, Rewrite rewrite) {
  PieceWriter writer(list);
  bool first = list.at_start;
  for (Piece& piece : list.pieces) {
    const auto begin = static_cast<std::uint32_t>(list.rewriting.size());
    rewrite(piece, first, writer);
    piece = {begin, static_cast<std::uint32_t>(list.rewriting.size())};
    first = false;
  }
  list.rewritten.swap(list.rewriting);
  list.origins.swap(list.rewriting_origins);
  list.text = list.rewritten;
}

Status split_by_pattern(PieceList& list, const Pattern& pattern, Behavior behavior, bool invert,
                        RegexScratch& scratch) {
  return split_pieces(list, [&](const Piece& piece, std::vector<Piece>& out) {
    Splitter splitter(behavior, out);
    std::uint32_t done = piece.begin;
    Status status =
        pattern.each(list.view(piece), scratch, [&](std::size_t begin, std::size_t end) {
          const auto match_begin = static_cast<std::uint32_t>(piece.begin + begin);
          const auto match_end = static_cast<std::uint32_t>(piece.begin + end);
          splitter.add(done, match_begin, invert);
          splitter.add(match_begin, match_end, !invert);
          done = match_end;
        });
    if (status.ok()) splitter.add(done, piece.end, invert);
    return status;
  });
}

Status split_by_character(PieceList& list, Behavior behavior, bool (*matches)(char32_t)) {
  return split_pieces(list, [&](const Piece& piece, std::vector<Piece>& out) {
    Splitter splitter(behavior, out);
    std::uint32_t done = piece.begin;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const auto begin = static_cast<std::uint32_t>(at);
      if (!matches(next_code_point(list.text, at))) continue;
      splitter.add(done, begin, false);
      splitter.add(begin, static_cast<std::uint32_t>(at), true);
      done = static_cast<std::uint32_t>(at);
    }
    splitter.add(done, piece.end, false);
    return Status();
  });
}

class PatternSplit final : public PreTokenizer {
 public:
  PatternSplit(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  Status apply(PieceList& list, RegexScratch& scratch) const override {
    return split_by_pattern(list, pattern_, behavior_, invert_, scratch);
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

class CharacterSplit final : public PreTokenizer {
 public:
  CharacterSplit(Behavior behavior, bool (*matches)(char32_t))
      : behavior_(behavior), matches_(matches) {}

  Status apply(PieceList& list, RegexScratch&) const override {
    return split_by_character(list, behavior_, matches_);
  }

 private:
  Behavior behavior_;
  bool (*matches_)(char32_t);
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Pattern> pattern)
      : add_prefix_space_(add_prefix_space), pattern_(std::move(pattern)) {}

  Status apply(PieceList& list, RegexScratch& scratch) const override {
    if (add_prefix_space_) {
      rewrite_pieces(list, [&](const Piece& piece, bool, PieceWriter& out) {
        if (list.text[piece.begin] != ' ') out.add(" ", piece.begin);
        out.copy(piece.begin, piece.end);
      });
    }
    if (pattern_) {
      Status status = split_by_pattern(list, *pattern_, Behavior::kIsolated, false, scratch);
      if (!status.ok()) return status;
    }
    if (!deferred_) {
      rewrite_pieces(list, [&](const Piece& piece, bool, PieceWriter& out) {
        std::string spelled;
        for (std::size_t at = piece.begin; at < piece.end; ++at) {
          spelled.clear();
          append_byte_characters(list.text.substr(at, 1), spelled);
          out.add(spelled, at);
        }
      });
    }
    return {};
  }

  bool defer_byte_level() override { return deferred_ = true; }

 private:
  bool add_prefix_space_;
  std::optional<Pattern> pattern_;
  bool deferred_ = false;
};

class Metaspace final : public PreTokenizer {
 public:
  enum class PrependScheme { kAlways, kFirst, kNever };
  Metaspace(std::string replacement, PrependScheme prepend, bool split)
      : replacement_(std::move(replacement)),
        pattern_(Pattern::literal(replacement_)),
        prepend_(prepend),
        split_(split) {}

  Status apply(PieceList& list, RegexScratch& scratch) const override {
    rewrite_pieces(list, [&](const Piece& piece, bool first, PieceWriter& out) {
      const std::string_view text = list.text.substr(0, piece.end);
      const bool prepend =
          prepend_ == PrependScheme::kAlways || (prepend_ == PrependScheme::kFirst && first);
      if (prepend && text[piece.begin] != ' ' &&
          !text.substr(piece.begin).starts_with(replacement_))
        out.add(replacement_, piece.begin);
      for (std::size_t at = piece.begin; at < piece.end;) {
        const std::size_t space = std::min(text.find(' ', at), text.size());
        out.copy(at, space);
        if (space < text.size()) out.add(replacement_, space);
        at = space + 1;
      }
    });
    if (!split_) return {};
    return split_by_pattern(list, pattern_, Behavior::kMergedWithNext, false, scratch);
  }

 private:
  std::string replacement_;
  Pattern pattern_;
  PrependScheme prepend_;
  bool split_;
};

// Runs of word characters and runs of anything else but white space.
class Whitespace final : public PreTokenizer {
 public:
  Status apply(PieceList& list, RegexScratch&) const override {
    return split_pieces(list, [&](const Piece& piece, std::vector<Piece>& out) {
      int previous = 0;
      for (std::size_t at = piece.begin; at < piece.end;) {
        const auto begin = static_cast<std::uint32_t>(at);
        const char32_t c = next_code_point(list.text, at);
        const int kind = is_white_space(c) ? 0 : is_word_character(c) ? 1 : 2;
        if (kind != 0 && kind == previous) {
          out.back().end = static_cast<std::uint32_t>(at);
        } else if (kind != 0) {
          out.push_back({begin, static_cast<std::uint32_t>(at)});
        }
        previous = kind;
      }
      return Status();
    });
  }
};

// Runs of one script. What is of any script goes with what is before it; in front of everything it
// is dropped, as in Hugging Face's tokenizers.
class UnicodeScripts final : public PreTokenizer {
 public:
  Status apply(PieceList& list, RegexScratch&) const override {
    return split_pieces(list, [&](const Piece& piece, std::vector<Piece>& out) {
      std::uint8_t previous = kAnyScript;
      std::uint32_t begin = piece.begin;
      for (std::size_t at = piece.begin; at < piece.end;) {
        const auto here = static_cast<std::uint32_t>(at);
        const std::uint8_t script = script_of(next_code_point(list.text, at));
        if (script == kAnyScript) continue;
        if (script == previous) continue;
        if (previous != kAnyScript) out.push_back({begin, here});
        begin = here;
        previous = script;
      }
      if (previous != kAnyScript) out.push_back({begin, piece.end});
      return Status();
    });
  }
};

// This many characters each.
class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}

  Status apply(PieceList& list, RegexScratch&) const override {
    return split_pieces(list, [&](const Piece& piece, std::vector<Piece>& out) {
      for (std::size_t at = piece.begin; at < piece.end;) {
        const auto begin = static_cast<std::uint32_t>(at);
        for (std::size_t i = 0; i < length_ && at < piece.end; ++i)
          at += utf8_length(list.text[at]);
        out.push_back({begin, static_cast<std::uint32_t>(at)});
      }
      return Status();
    });
  }

 private:
  std::size_t length_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}

  Status apply(PieceList& list, RegexScratch& scratch) const override {
    for (const auto& part : parts_) {
      Status status = part->apply(list, scratch);
      if (!status.ok()) return status;
    }
    return {};
  }

  bool defer_byte_level() override { return !parts_.empty() && parts_.back()->defer_byte_level(); }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

template <class T, class... Args>
PreTokenizerResult pre_tokenizer_of(Args&&... args) {
  return std::unique_ptr<PreTokenizer>(std::make_unique<T>(std::forward<Args>(args)...));
}

PreTokenizerResult sequence_pre_tokenizer(const json& component, int depth) {
  if (depth >= kComponentDepthMax)
    return runtime::invalid_argument("sequences are nested too deeply");
  auto members = json_array(component, "pretokenizers");
  if (!members.ok()) return members.status();
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (const json& member : **members) {
    auto part = pre_tokenizer_from_json(member, depth + 1);
    if (!part.ok()) return part.status();
    parts.push_back(std::move(*part));
  }
  return pre_tokenizer_of<PreTokenizerSequence>(std::move(parts));
}

PreTokenizerResult byte_level_from_json(const json& component) {
  auto prefix = json_bool_or(component, "add_prefix_space", true);
  auto use_regex = json_bool_or(component, "use_regex", true);
  if (!prefix.ok()) return prefix.status();
  if (!use_regex.ok()) return use_regex.status();
  std::optional<Pattern> pattern;
  if (*use_regex) {
    auto compiled = Pattern::regex(kGpt2Pattern);
    if (!compiled.ok()) return compiled.status();
    pattern = std::move(*compiled);
  }
  return pre_tokenizer_of<ByteLevel>(*prefix, std::move(pattern));
}

PreTokenizerResult split_from_json(const json& component) {
  auto pattern = Pattern::from_json(component);
  if (!pattern.ok()) return pattern.status();
  auto behavior = behavior_from_json(component, "");
  if (!behavior.ok()) return behavior.status();
  auto invert = json_bool_or(component, "invert", false);
  if (!invert.ok()) return invert.status();
  return pre_tokenizer_of<PatternSplit>(std::move(*pattern), *behavior, *invert);
}

PreTokenizerResult metaspace_pre_tokenizer(const json& component) {
  auto replacement = json_string_or(component, "replacement", "\xe2\x96\x81");
  auto split = json_bool_or(component, "split", true);
  auto add_prefix_space =
      json_bool_or(component, "add_prefix_space", true);  // how older files say always or never
  if (!replacement.ok()) return replacement.status();
  if (!split.ok()) return split.status();
  if (!add_prefix_space.ok()) return add_prefix_space.status();
  auto scheme = json_string_or(component, "prepend_scheme", *add_prefix_space ? "always" : "never");
  if (!scheme.ok()) return scheme.status();
  if (replacement->empty() || utf8_length(replacement->front()) != replacement->size()) {
    return runtime::invalid_argument("replacement is not one character");
  }
  using PrependScheme = Metaspace::PrependScheme;
  if (*scheme == "always")
    return pre_tokenizer_of<Metaspace>(std::string(*replacement), PrependScheme::kAlways, *split);
  if (*scheme == "first")
    return pre_tokenizer_of<Metaspace>(std::string(*replacement), PrependScheme::kFirst, *split);
  if (*scheme == "never")
    return pre_tokenizer_of<Metaspace>(std::string(*replacement), PrependScheme::kNever, *split);
  return runtime::unimplemented("prepend_scheme " + std::string(*scheme) + " is not supported");
}

PreTokenizerResult fixed_length_from_json(const json& component) {
  constexpr std::int64_t kLength = 5;  // what the reference takes where a file does not say
  if (json_member(component, "length") == nullptr) return pre_tokenizer_of<FixedLength>(kLength);
  auto length = json_integer(component, "length");
  if (!length.ok()) return length.status();
  if (*length < 1)
    return runtime::invalid_argument("length " + std::to_string(*length) + " is not positive");
  return pre_tokenizer_of<FixedLength>(static_cast<std::size_t>(*length));
}

PreTokenizerResult digits_from_json(const json& component) {
  auto individual = json_bool_or(component, "individual_digits", false);
  if (!individual.ok()) return individual.status();
  return pre_tokenizer_of<CharacterSplit>(*individual ? Behavior::kIsolated : Behavior::kContiguous,
                                          is_numeric);
}

PreTokenizerResult delimiter_from_json(const json& component) {
  auto delimiter = json_string(component, "delimiter");
  if (!delimiter.ok()) return delimiter.status();
  return pre_tokenizer_of<PatternSplit>(Pattern::literal(std::string(*delimiter)),
                                        Behavior::kRemoved, false);
}

PreTokenizerResult punctuation_from_json(const json& component) {
  auto behavior = behavior_from_json(component, "Isolated");
  if (!behavior.ok()) return behavior.status();
  return pre_tokenizer_of<CharacterSplit>(*behavior, is_punctuation);
}

PreTokenizerResult bert() {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.push_back(std::make_unique<CharacterSplit>(Behavior::kRemoved, is_white_space));
  parts.push_back(std::make_unique<CharacterSplit>(Behavior::kIsolated, is_punctuation));
  return pre_tokenizer_of<PreTokenizerSequence>(std::move(parts));
}

}  // namespace

PreTokenizerResult pre_tokenizer_from_json(const json& component, int depth) {
  auto type = json_type(component);
  if (!type.ok()) return type.status();
  if (*type == "Sequence") return sequence_pre_tokenizer(component, depth);
  if (*type == "ByteLevel") return byte_level_from_json(component);
  if (*type == "Split") return split_from_json(component);
  if (*type == "Metaspace") return metaspace_pre_tokenizer(component);
  if (*type == "Digits") return digits_from_json(component);
  if (*type == "Punctuation") return punctuation_from_json(component);
  if (*type == "CharDelimiterSplit") return delimiter_from_json(component);
  if (*type == "Whitespace") return pre_tokenizer_of<Whitespace>();
  if (*type == "WhitespaceSplit")
    return pre_tokenizer_of<CharacterSplit>(Behavior::kRemoved, is_white_space);
  if (*type == "BertPreTokenizer") return bert();
  if (*type == "UnicodeScripts") return pre_tokenizer_of<UnicodeScripts>();
  if (*type == "FixedLength") return fixed_length_from_json(component);
  return unsupported_component("pre_tokenizer", *type);
}

PreTokenizerResult make_byte_level_pre_tokenizer(std::span<const std::string_view> patterns) {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (std::string_view text : patterns) {
    auto pattern = Pattern::regex(text);
    if (!pattern.ok()) return pattern.status();
    parts.push_back(
        std::make_unique<PatternSplit>(std::move(*pattern), Behavior::kIsolated, false));
  }
  parts.push_back(std::make_unique<ByteLevel>(false, std::nullopt));
  return pre_tokenizer_of<PreTokenizerSequence>(std::move(parts));
}

}  // namespace rl
