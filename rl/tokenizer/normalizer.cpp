#include "rl/tokenizer/normalizer.h"

#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <utility>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/charsmap_normalizer.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/normal_form.h"
#include "rl/tokenizer/pattern.h"
#include "rl/tokenizer/unicode_corrections.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

// A normal form of Unicode. Text that the form cannot change is found without building anything.
class NormalForm final : public Normalizer {
 public:
  NormalForm(int options, char32_t stable_below)
      : options_(static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE)),
        stable_below_(stable_below) {}

  Status apply(std::string& text, RegexScratch&) const override {
    if (unchanged(text)) return {};
    std::string out;
    for (const NormalizedPart& part : parts_to_normalize(text)) {
      if (part.inert) {
        out += part.text;
        continue;
      }
      if (Status status = append_mapped(part.text, out); !status.ok()) return status;
    }
    text = std::move(out);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    if (!unchanged(text.text))
      apply_changes(normal_form_changes(text.text, (options_ & UTF8PROC_COMPAT) != 0,
                                        (options_ & UTF8PROC_COMPOSE) != 0),
                    text);
    return {};
  }

 private:
  Status append_mapped(std::string_view text, std::string& out) const {
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t length =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_);
    if (length < 0)
      return runtime::resource_exhausted(std::string("normalizing text: ") +
                                         utf8proc_errmsg(length));
    out.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
    std::free(mapped);
    return {};
  }

  bool unchanged(std::string_view text) const {
    for (std::size_t at = 0; at < text.size();) {
      if (next_code_point(text, at) >= stable_below_) return false;
    }
    return true;
  }

  utf8proc_option_t options_;
  char32_t stable_below_;  // text of smaller code points only is already in the form
};

// One character at a time: `map` appends what becomes of it.
class CharacterMap final : public Normalizer {
 public:
  explicit CharacterMap(void (*map)(char32_t, std::string&)) : map_(map) {}

  Status apply(std::string& text, RegexScratch&) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) map_(next_code_point(text, at), out);
    text = std::move(out);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    AlignedRewriter rewriter(text);
    std::string mapped;
    for (std::size_t at = 0; at < text.text.size();) {
      const std::size_t begin = at;
      mapped.clear();
      map_(next_code_point(text.text, at), mapped);
      rewriter.add(mapped, begin);
    }
    rewriter.finish();
    return {};
  }

 private:
  void (*map_)(char32_t, std::string&);
};

void lowercase(char32_t c, std::string& out) {
  if (c == 0x130) {  // the only character whose lower case is two characters
    out += "i\xcc\x87";
  } else {
    const auto small = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    append_utf8(small == c ? later_small_letter(c) : small, out);
  }
}

void strip_marks(char32_t c, std::string& out) {
  if (!is_mark(c)) append_utf8(c, out);
}

void strip_nonspacing_marks(char32_t c, std::string& out) {
  if (!is_nonspacing_mark(c)) append_utf8(c, out);
}

// The cleaning of NMT models: control characters go, unusual spaces become spaces.
void nmt(char32_t c, std::string& out) {
  if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
      c == 0x9f)
    return;
  const bool space = c == 0x9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
  append_utf8(space ? U' ' : c, out);
}

void bert_clean(char32_t c, std::string& out) {
  if (c == '\t' || c == '\n' || c == '\r') {
    out += ' ';
  } else if (c != 0 && c != 0xfffd && !is_other(c)) {
    append_utf8(is_white_space(c) ? U' ' : c, out);
  }
}

void bert_chinese(char32_t c, std::string& out) {
  const bool ideograph = (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
                         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
                         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
                         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
  if (ideograph) out += ' ';
  append_utf8(c, out);
  if (ideograph) out += ' ';
}

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  Status apply(std::string& text, RegexScratch&) const override {
    const auto [begin, end] = kept(text);
    text = text.substr(begin, end - begin);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    const auto [begin, end] = kept(text.text);
    AlignedRewriter rewriter(text);
    rewriter.keep(begin, end);
    rewriter.finish();
    return {};
  }

 private:
  std::pair<std::size_t, std::size_t> kept(std::string_view text) const {
    std::size_t begin = 0;
    std::size_t end = text.size();
    while (left_ && begin < end) {
      std::size_t next = begin;
      if (!is_white_space(next_code_point(text, next))) break;
      begin = next;
    }
    while (right_ && end > begin) {
      std::size_t previous = end;
      if (!is_white_space(previous_code_point(text, previous))) break;
      end = previous;
    }
    return {begin, end};
  }

  bool left_;
  bool right_;
};

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  Status apply(std::string& text, RegexScratch& scratch) const override {
    auto replaced = pattern_.replace(text, content_, scratch);
    if (!replaced.ok()) return replaced.status();
    text = std::move(*replaced);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch& scratch) const override {
    AlignedRewriter rewriter(text);
    std::size_t copied = 0;
    Status status = pattern_.each(text.text, scratch, [&](std::size_t begin, std::size_t end) {
      rewriter.keep(copied, begin);
      rewriter.add(content_, end == 0 ? text.start() : text.origins[end - 1]);
      copied = end;
    });
    if (!status.ok()) return status;
    rewriter.keep(copied, text.text.size());
    rewriter.finish();
    return {};
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}

  Status apply(std::string& text, RegexScratch&) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    AlignedRewriter rewriter(text);
    rewriter.add(prefix_, 0);
    rewriter.keep(0, text.text.size());
    rewriter.finish();
    return {};
  }

 private:
  std::string prefix_;
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  Status apply(std::string& text, RegexScratch&) const override {
    std::string out;
    append_byte_characters(text, out);
    text = std::move(out);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    AlignedRewriter rewriter(text);
    for (std::size_t at = 0; at < text.text.size(); ++at) {
      std::string spelled;
      append_byte_characters(std::string_view(text.text).substr(at, 1), spelled);
      rewriter.add(spelled, at);
    }
    rewriter.finish();
    return {};
  }
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts_(std::move(parts)) {}

  Status apply(std::string& text, RegexScratch& scratch) const override {
    for (const auto& part : parts_) {
      Status status = part->apply(text, scratch);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch& scratch) const override {
    for (const auto& part : parts_) {
      Status status = part->apply_aligned(text, scratch);
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

using NormalizerResult = Result<std::unique_ptr<Normalizer>>;

std::unique_ptr<Normalizer> normal_form(std::string_view type) {
  // Below U+0300 nothing composes; below U+00C0 nothing decomposes canonically; below U+00A0
  // nothing has a compatible form.
  if (type == "NFC") return std::make_unique<NormalForm>(UTF8PROC_COMPOSE, 0x300);
  if (type == "NFD") return std::make_unique<NormalForm>(UTF8PROC_DECOMPOSE, 0xc0);
  if (type == "NFKC") return std::make_unique<NormalForm>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT, 0xa0);
  if (type == "NFKD")
    return std::make_unique<NormalForm>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, 0xa0);
  return nullptr;
}

NormalizerResult bert_from_json(const json& component) {
  auto clean = json_bool_or(component, "clean_text", true);
  auto chinese = json_bool_or(component, "handle_chinese_chars", true);
  auto lower = json_bool_or(component, "lowercase", true);
  auto accents = json_bool_or(component, "strip_accents", lower.value_or(true));
  for (const auto* field : {&clean, &chinese, &lower, &accents}) {
    if (!field->ok()) return field->status();
  }
  std::vector<std::unique_ptr<Normalizer>> parts;
  if (*clean) parts.push_back(std::make_unique<CharacterMap>(bert_clean));
  if (*chinese) parts.push_back(std::make_unique<CharacterMap>(bert_chinese));
  if (*accents) {
    parts.push_back(normal_form("NFD"));
    parts.push_back(std::make_unique<CharacterMap>(strip_nonspacing_marks));
  }
  if (*lower) parts.push_back(std::make_unique<CharacterMap>(lowercase));
  return make_normalizer_sequence(std::move(parts));
}

NormalizerResult sequence_normalizer(const json& component, int depth) {
  if (depth >= kComponentDepthMax)
    return runtime::invalid_argument("sequences are nested too deeply");
  auto members = json_array(component, "normalizers");
  if (!members.ok()) return members.status();
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (const json& member : **members) {
    auto part = normalizer_from_json(member, depth + 1);
    if (!part.ok()) return part.status();
    parts.push_back(std::move(*part));
  }
  return make_normalizer_sequence(std::move(parts));
}

NormalizerResult replace_normalizer(const json& component) {
  auto pattern = Pattern::from_json(component);
  if (!pattern.ok()) return pattern.status();
  auto content = json_string(component, "content");
  if (!content.ok()) return content.status();
  return std::unique_ptr<Normalizer>(
      std::make_unique<Replace>(std::move(*pattern), std::string(*content)));
}

NormalizerResult strip_normalizer(const json& component) {
  auto left = json_bool_or(component, "strip_left", true);
  auto right = json_bool_or(component, "strip_right", true);
  if (!left.ok()) return left.status();
  if (!right.ok()) return right.status();
  return std::unique_ptr<Normalizer>(std::make_unique<Strip>(*left, *right));
}

}  // namespace

std::unique_ptr<Normalizer> make_nfc() { return normal_form("NFC"); }

std::unique_ptr<Normalizer> make_prepend(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}

std::unique_ptr<Normalizer> make_replace(std::string from, std::string to) {
  return std::make_unique<Replace>(Pattern::literal(std::move(from)), std::move(to));
}

std::unique_ptr<Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<Normalizer>> parts) {
  return std::make_unique<NormalizerSequence>(std::move(parts));
}

NormalizerResult normalizer_from_json(const json& component, int depth) {
  auto type = json_type(component);
  if (!type.ok()) return type.status();
  if (auto form = normal_form(*type)) return form;
  if (*type == "Sequence") return sequence_normalizer(component, depth);
  if (*type == "Replace") return replace_normalizer(component);
  if (*type == "Strip") return strip_normalizer(component);
  if (*type == "BertNormalizer") return bert_from_json(component);
  if (*type == "Lowercase")
    return std::unique_ptr<Normalizer>(std::make_unique<CharacterMap>(lowercase));
  if (*type == "StripAccents")
    return std::unique_ptr<Normalizer>(std::make_unique<CharacterMap>(strip_marks));
  if (*type == "Nmt") return std::unique_ptr<Normalizer>(std::make_unique<CharacterMap>(nmt));
  if (*type == "Precompiled") return precompiled_from_json(component);
  if (*type == "ByteLevel")
    return std::unique_ptr<Normalizer>(std::make_unique<ByteLevelNormalizer>());
  if (*type == "Prepend") {
    auto prefix = json_string(component, "prepend");
    if (!prefix.ok()) return prefix.status();
    return make_prepend(std::string(*prefix));
  }
  return unsupported_component("normalizer", *type);
}

}  // namespace rl
