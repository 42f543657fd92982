#include "rl/tokenizer/decoder.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/pattern.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;

namespace {

using DecoderResult = Result<std::unique_ptr<TokenDecoder>>;

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = from.empty() ? std::string_view::npos : text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::string join(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) append_token_bytes(token, bytes);
    tokens.assign(1, replace_invalid_utf8(bytes));
  }
  bool is_byte_level() const override { return true; }
};

class MetaspaceDecoder final : public TokenDecoder {
 public:
  MetaspaceDecoder(std::string replacement, bool prepends)
      : replacement_(std::move(replacement)), prepends_(prepends) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replace_all(tokens[i], replacement_, i == 0 && prepends_ ? "" : " ");
    }
  }

 private:
  std::string replacement_;
  bool prepends_;
};

// A run of byte tokens becomes its text, or one U+FFFD per byte when it is no UTF-8.
class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string run;
    const auto end_run = [&] {
      if (run.empty()) return;
      if (invalid_utf8_at(run)) {
        for (std::size_t i = 0; i < run.size(); ++i) out.emplace_back(kReplacementCharacter);
      } else {
        out.push_back(run);
      }
      run.clear();
    };
    for (std::string& token : tokens) {
      if (auto byte = parse_byte_token(token)) {
        run += static_cast<char>(*byte);
      } else {
        end_run();
        out.push_back(std::move(token));
      }
    }
    end_run();
    tokens = std::move(out);
  }
};

class FuseDecoder final : public TokenDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override { tokens.assign(1, join(tokens)); }
};

class StripDecoder final : public TokenDecoder {
 public:
  StripDecoder(std::string content, std::int64_t start, std::int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::int64_t i = 0; i < start_ && rest.starts_with(content_); ++i)
        rest.remove_prefix(content_.size());
      for (std::int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i)
        rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  std::int64_t start_;
  std::int64_t stop_;
};

class ReplaceDecoder final : public TokenDecoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void decode(std::vector<std::string>& tokens) const override {
    RegexScratch scratch;
    for (std::string& token : tokens) {
      auto replaced = pattern_.replace(token, content_, scratch);
      if (replaced.ok())
        token = std::move(*replaced);  // a token is far too short for a pattern to give up on
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class WordPieceDecoder final : public TokenDecoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix_) ? token.substr(prefix_.size()) : " " + token;
      if (!cleanup_) continue;
      static constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
          {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
          {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
          {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
      for (const auto& [from, to] : kCleanups) token = replace_all(token, from, to);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

// Ends of words are marked with a suffix, which becomes a space.
class SuffixDecoder final : public TokenDecoder {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

class SequenceDecoder final : public TokenDecoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<TokenDecoder>> parts)
      : parts_(std::move(parts)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts_) part->decode(tokens);
  }
  bool is_byte_level() const override { return parts_.size() == 1 && parts_[0]->is_byte_level(); }

 private:
  std::vector<std::unique_ptr<TokenDecoder>> parts_;
};

template <class T, class... Args>
DecoderResult make_decoder(Args&&... args) {
  return std::unique_ptr<TokenDecoder>(std::make_unique<T>(std::forward<Args>(args)...));
}

DecoderResult sequence_decoder(const json& component, int depth) {
  if (depth >= kComponentDepthMax)
    return runtime::invalid_argument("sequences are nested too deeply");
  auto members = json_array(component, "decoders");
  if (!members.ok()) return members.status();
  std::vector<std::unique_ptr<TokenDecoder>> parts;
  for (const json& member : **members) {
    auto part = decoder_from_json(member, depth + 1);
    if (!part.ok()) return part.status();
    parts.push_back(std::move(*part));
  }
  return make_decoder<SequenceDecoder>(std::move(parts));
}

DecoderResult metaspace_decoder(const json& component) {
  auto replacement = json_string_or(component, "replacement", kWordMark);
  auto add_prefix_space = json_bool_or(component, "add_prefix_space", true);
  if (!replacement.ok()) return replacement.status();
  if (!add_prefix_space.ok()) return add_prefix_space.status();
  auto scheme = json_string_or(component, "prepend_scheme", *add_prefix_space ? "always" : "never");
  if (!scheme.ok()) return scheme.status();
  return make_decoder<MetaspaceDecoder>(std::string(*replacement), *scheme != "never");
}

DecoderResult strip_decoder(const json& component) {
  auto content = json_string(component, "content");
  auto start = json_integer(component, "start");
  auto stop = json_integer(component, "stop");
  if (!content.ok()) return content.status();
  if (!start.ok()) return start.status();
  if (!stop.ok()) return stop.status();
  if (content->empty()) return runtime::invalid_argument("content of Strip is empty");
  return make_decoder<StripDecoder>(std::string(*content), *start, *stop);
}

DecoderResult replace_decoder(const json& component) {
  auto pattern = Pattern::from_json(component);
  if (!pattern.ok()) return pattern.status();
  auto content = json_string(component, "content");
  if (!content.ok()) return content.status();
  return make_decoder<ReplaceDecoder>(std::move(*pattern), std::string(*content));
}

DecoderResult wordpiece_from_json(const json& component) {
  auto prefix = json_string_or(component, "prefix", "##");
  auto cleanup = json_bool_or(component, "cleanup", true);
  if (!prefix.ok()) return prefix.status();
  if (!cleanup.ok()) return cleanup.status();
  return make_decoder<WordPieceDecoder>(std::string(*prefix), *cleanup);
}

DecoderResult suffix_from_json(const json& component) {
  auto suffix = json_string_or(component, "suffix", "</w>");
  if (!suffix.ok()) return suffix.status();
  return make_decoder<SuffixDecoder>(std::string(*suffix));
}

}  // namespace

DecoderResult decoder_from_json(const json& component, int depth) {
  auto type = json_type(component);
  if (!type.ok()) return type.status();
  if (*type == "Sequence") return sequence_decoder(component, depth);
  if (*type == "ByteLevel") return make_decoder<ByteLevelDecoder>();
  if (*type == "Metaspace") return metaspace_decoder(component);
  if (*type == "ByteFallback") return make_decoder<ByteFallbackDecoder>();
  if (*type == "Fuse") return make_decoder<FuseDecoder>();
  if (*type == "Strip") return strip_decoder(component);
  if (*type == "Replace") return replace_decoder(component);
  if (*type == "WordPiece") return wordpiece_from_json(component);
  if (*type == "BPEDecoder") return suffix_from_json(component);
  return unsupported_component("decoder", *type);
}

std::unique_ptr<TokenDecoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<TokenDecoder> make_sentencepiece_decoder(std::int64_t leading_spaces_max) {
  std::vector<std::unique_ptr<TokenDecoder>> parts;
  parts.push_back(std::make_unique<ReplaceDecoder>(Pattern::literal(std::string(kWordMark)), " "));
  parts.push_back(std::make_unique<ByteFallbackDecoder>());
  parts.push_back(std::make_unique<FuseDecoder>());
  if (leading_spaces_max > 0)
    parts.push_back(std::make_unique<StripDecoder>(" ", leading_spaces_max, 0));
  return std::make_unique<SequenceDecoder>(std::move(parts));
}

}  // namespace rl
