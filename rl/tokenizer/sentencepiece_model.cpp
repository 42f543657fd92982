#include "rl/tokenizer/sentencepiece_model.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr std::size_t kPiecesMax = 4
                                   << 20;  // the largest published ones have a quarter of a million

enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field of a message.
struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::kVarint;
  std::uint64_t value = 0;  // of numbers
  std::string_view bytes;   // of kBytes

  Status expect(Wire wanted) const {
    if (wire == wanted) return {};
    return runtime::invalid_argument("has wire type " + std::to_string(static_cast<int>(wire)) +
                                     ", not " + std::to_string(static_cast<int>(wanted)));
  }
};

// Reads a message's fields one after the other.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }

  Result<Field> next() {
    const std::size_t begin = at_;
    auto tag = varint();
    if (!tag) return damaged(begin, "a field's tag is cut off or too long");
    Field field;
    if (*tag >> 3 == 0 || *tag >> 3 > (1u << 29) - 1)
      return damaged(begin, "a field has no valid number");
    field.number = static_cast<std::uint32_t>(*tag >> 3);
    switch (*tag & 7) {
      case 0: {
        auto value = varint();
        if (!value)
          return damaged(begin, "field " + std::to_string(field.number) +
                                    " is a number that is cut off or too long");
        field.value = *value;
        return field;
      }
      case 1:
      case 5: {
        field.wire = (*tag & 7) == 1 ? Wire::kFixed64 : Wire::kFixed32;
        const std::size_t size = (*tag & 7) == 1 ? 8 : 4;
        if (bytes_.size() - at_ < size)
          return damaged(begin, "field " + std::to_string(field.number) + " is cut off");
        std::memcpy(&field.value, bytes_.data() + at_,
                    size);  // the machines we run on are little endian, as the format is
        at_ += size;
        return field;
      }
      case 2: {
        auto size = varint();
        if (!size || *size > bytes_.size() - at_) {
          return damaged(begin,
                         "field " + std::to_string(field.number) + " is longer than what holds it");
        }
        field.wire = Wire::kBytes;
        field.bytes = bytes_.substr(at_, static_cast<std::size_t>(*size));
        at_ += static_cast<std::size_t>(*size);
        return field;
      }
      default:
        return damaged(begin, "field " + std::to_string(field.number) + " has wire type " +
                                  std::to_string(*tag & 7));
    }
  }

 private:
  static_assert(std::endian::native == std::endian::little);

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  Status damaged(std::size_t at, const std::string& what) const {
    return runtime::invalid_argument("at byte " + std::to_string(at) + ": " + what);
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Calls `read(field)` for each field of a message; a name for the field, if it has one, goes before
// the message of a failure.
template <class Read>
Status each_field(std::string_view message, Read read) {
  for (MessageReader reader(message); !reader.at_end();) {
    auto field = reader.next();
    if (!field.ok()) return field.status();
    if (Status status = read(*field); !status.ok()) return status;
  }
  return {};
}

Status read_bool(const Field& field, const char* name, bool& out) {
  if (Status status = field.expect(Wire::kVarint); !status.ok()) return status.with_context(name);
  out = field.value != 0;
  return {};
}

Status read_piece_id(const Field& field, const char* name, std::int32_t& out) {
  if (Status status = field.expect(Wire::kVarint); !status.ok()) return status.with_context(name);
  out = static_cast<std::int32_t>(
      field.value);  // negative numbers come as 64 bits with the sign extended
  return {};
}

Status read_piece(const Field& field, SentencePiece& piece) {
  if (field.number == 1) {
    if (Status status = field.expect(Wire::kBytes); !status.ok())
      return status.with_context("piece");
    if (auto at = invalid_utf8_at(field.bytes))
      return runtime::invalid_argument("piece: not UTF-8 at byte " + std::to_string(*at));
    piece.text = field.bytes;
  } else if (field.number == 2) {
    if (Status status = field.expect(Wire::kFixed32); !status.ok())
      return status.with_context("score");
    piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    if (!(piece.score - piece.score == 0))
      return runtime::invalid_argument("score: not a finite number");
  } else if (field.number == 3) {
    if (Status status = field.expect(Wire::kVarint); !status.ok())
      return status.with_context("type");
    if (field.value < 1 || field.value > 6)
      return runtime::invalid_argument("type: " + std::to_string(field.value) + " is unknown");
    piece.type = static_cast<SentencePiece::Type>(field.value);
  }
  return {};
}

Status read_trainer(const Field& field, SentencePieceModel& model) {
  switch (field.number) {
    case 3:
      if (Status status = field.expect(Wire::kVarint); !status.ok())
        return status.with_context("model_type");
      if (field.value < 1 || field.value > 4)
        return runtime::invalid_argument("model_type: " + std::to_string(field.value) +
                                         " is unknown");
      model.kind = static_cast<SentencePieceModel::Kind>(field.value);
      return {};
    case 24:
      return read_bool(field, "treat_whitespace_as_suffix", model.treat_whitespace_as_suffix);
    case 35: return read_bool(field, "byte_fallback", model.byte_fallback);
    case 40: return read_piece_id(field, "unk_id", model.unk_id);
    case 41: return read_piece_id(field, "bos_id", model.bos_id);
    case 42: return read_piece_id(field, "eos_id", model.eos_id);
    case 43: return read_piece_id(field, "pad_id", model.pad_id);
    default: return {};
  }
}

Status read_normalizer(const Field& field, SentencePieceModel& model) {
  switch (field.number) {
    case 2:
      if (Status status = field.expect(Wire::kBytes); !status.ok())
        return status.with_context("precompiled_charsmap");
      model.precompiled_charsmap = field.bytes;
      return {};
    case 3: return read_bool(field, "add_dummy_prefix", model.add_dummy_prefix);
    case 4: return read_bool(field, "remove_extra_whitespaces", model.remove_extra_whitespaces);
    case 5: return read_bool(field, "escape_whitespaces", model.escape_whitespaces);
    default: return {};
  }
}

Status read_model(const Field& field, SentencePieceModel& model) {
  if (field.number > 3) return {};
  const std::string name = field.number == 1 ? "pieces[" + std::to_string(model.pieces.size()) + "]"
                           : field.number == 2 ? "trainer_spec"
                                               : "normalizer_spec";
  Status status = field.expect(Wire::kBytes);
  if (status.ok() && field.number == 1) {
    if (model.pieces.size() == kPiecesMax)
      return runtime::invalid_argument("pieces: more than " + std::to_string(kPiecesMax));
    SentencePiece& piece = model.pieces.emplace_back();
    status = each_field(field.bytes, [&](const Field& inner) { return read_piece(inner, piece); });
    if (status.ok() && piece.text.empty())
      status = runtime::invalid_argument("piece: is missing or empty");
  } else if (status.ok() && field.number == 2) {
    status =
        each_field(field.bytes, [&](const Field& inner) { return read_trainer(inner, model); });
  } else if (status.ok()) {
    status =
        each_field(field.bytes, [&](const Field& inner) { return read_normalizer(inner, model); });
  }
  return status.with_context(name);
}

}  // namespace

Result<SentencePieceModel> parse_sentencepiece_model(std::string_view bytes) {
  // Field 1, bytes: how every SentencePiece model begins, and neither JSON nor tiktoken's base64
  // does.
  if (!bytes.starts_with('\x0a'))
    return runtime::invalid_argument("not a SentencePiece model: it does not begin with pieces");
  SentencePieceModel model;
  Status status = each_field(bytes, [&](const Field& field) { return read_model(field, model); });
  if (!status.ok()) return status;
  const auto size = static_cast<std::int32_t>(model.pieces.size());
  const std::pair<const char*, std::int32_t> ids[] = {{"unk_id", model.unk_id},
                                                      {"bos_id", model.bos_id},
                                                      {"eos_id", model.eos_id},
                                                      {"pad_id", model.pad_id}};
  for (const auto& [name, id] : ids) {
    if (id >= size)
      return runtime::invalid_argument(std::string("trainer_spec: ") + name + ": " +
                                       std::to_string(id) + " is outside the " +
                                       std::to_string(size) + " pieces");
  }
  if (model.unk_id < 0)
    return runtime::invalid_argument("trainer_spec: unk_id: " + std::to_string(model.unk_id) +
                                     " is no id");
  return model;
}

}  // namespace rl
