#include "rl/weights/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "rl/weights/tensor_table.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

std::optional<DType> dtype_from_name(std::string_view name) {
  for (auto dtype :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16,
        DType::kI8, DType::kU64, DType::kU32, DType::kU16, DType::kU8, DType::kBool}) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// Reads the header as a stream of events, so that a header of any shape costs no more memory than
// what is kept of it. A method that returns false ends the parse; status() then says why.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderHandler(SafetensorsHeader& header) : header_(header) {}
  const Status& status() const { return status_; }

  bool start_object(std::size_t) override {
    if (where_ == Where::kStart) return go(Where::kTop);
    if (where_ != Where::kTop) return unexpected("an object");
    return go(key_ == "__metadata__" ? Where::kMetadata : Where::kTensor);
  }

  bool end_object() override {
    if (where_ == Where::kTop) return go(Where::kDone);
    if (where_ == Where::kTensor) {
      if (!dtype_ || !shape_ || !offsets_) return fail("needs dtype, shape and data_offsets");
      header_.entries.push_back(
          {{tensor_, std::move(*shape_), *dtype_}, (*offsets_)[0], (*offsets_)[1]});
    }
    return go(Where::kTop);
  }

  bool key(std::string& key) override {
    key_ = key;
    if (where_ == Where::kTop && key != "__metadata__") {
      tensor_ = key;
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ != Where::kTensor || (key_ != "shape" && key_ != "data_offsets"))
      return unexpected("an array");
    numbers_.clear();
    return go(Where::kNumbers);
  }

  bool end_array() override {
    where_ = Where::kTensor;
    if (key_ == "shape") {
      shape_.emplace(numbers_.begin(), numbers_.end());
    } else {
      if (numbers_.size() != 2) return fail("data_offsets must be two numbers");
      offsets_ = {numbers_[0], numbers_[1]};
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (where_ != Where::kNumbers) return unexpected("a number");
    constexpr std::size_t kNumbersMax = 64;  // far above the dimensions of any tensor
    if (numbers_.size() == kNumbersMax) return fail(key_ + " has too many numbers");
    if (value > std::uint64_t{1} << 62)
      return fail(key_ + " holds " + std::to_string(value) + ", which is beyond any file");
    numbers_.push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (where_ == Where::kMetadata) {
      header_.metadata[key_] = value;
      return true;
    }
    if (where_ != Where::kTensor || key_ != "dtype") return unexpected("a string");
    dtype_ = dtype_from_name(value);
    if (dtype_) return true;
    status_ = runtime::unimplemented("tensor " + tensor_ + " has dtype " + value +
                                     ", which is not supported; convert it to F32, F16 or BF16");
    return false;
  }

  bool number_integer(std::int64_t value) override {
    return unexpected("the number " + std::to_string(value));
  }
  bool number_float(double, const std::string& text) override {
    return unexpected("the number " + text);
  }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    status_ = runtime::invalid_argument("the header is not valid JSON at its byte " +
                                        std::to_string(position));
    return false;
  }

 private:
  enum class Where { kStart, kTop, kMetadata, kTensor, kNumbers, kDone };

  bool go(Where where) {
    where_ = where;
    return true;
  }

  bool fail(const std::string& why) {
    status_ = runtime::invalid_argument("tensor " + tensor_ + ": " + why);
    return false;
  }

  bool unexpected(const std::string& what) {
    std::string at = where_ == Where::kStart ? "at the start" : "at key " + key_;
    if (where_ == Where::kTensor || where_ == Where::kNumbers) at += " of tensor " + tensor_;
    status_ = runtime::invalid_argument("the header has " + what + " " + at +
                                        ", where the format has none");
    return false;
  }

  SafetensorsHeader& header_;
  Status status_;
  Where where_ = Where::kStart;
  std::string key_;
  std::string tensor_;
  std::vector<std::uint64_t> numbers_;
  std::optional<DType> dtype_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::array<std::uint64_t, 2>> offsets_;
};

Status check_entries(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::unordered_set<std::string_view> names;
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::string what = "tensor " + entry.info.name;
    if (!names.insert(entry.info.name).second)
      return runtime::invalid_argument(what + " is listed twice");
    if (entry.end < entry.begin) return runtime::invalid_argument(what + " ends before it begins");
    if (entry.end > data_bytes) {
      return runtime::invalid_argument(what + " ends at byte " + std::to_string(entry.end) +
                                       " but the file holds " + std::to_string(data_bytes) +
                                       " bytes of tensors; it is truncated, fetch it again");
    }
    auto bytes = tensor_bytes(entry.info.shape, entry.info.dtype);
    if (!bytes || *bytes != entry.end - entry.begin) {
      return runtime::invalid_argument(
          what + ": its shape takes " + (bytes ? std::to_string(*bytes) : "too many") +
          " bytes, its data_offsets give " + std::to_string(entry.end - entry.begin));
    }
    if (entry.begin < at) return runtime::invalid_argument(what + " overlaps the one before it");
    if (entry.begin > at)
      return runtime::invalid_argument("bytes before " + what + " belong to no tensor");
    at = entry.end;
  }
  if (at != data_bytes) {
    return runtime::invalid_argument(std::to_string(data_bytes - at) +
                                     " bytes at the end belong to no tensor");
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file,
                                            std::string_view name) {
  static_assert(std::endian::native == std::endian::little,
                "tensor bytes are used as they lie in the file");
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof(header_bytes)) {
    return runtime::invalid_argument(std::string(name) + ": " + std::to_string(file.size()) +
                                     " bytes are too few for a safetensors file; fetch it again");
  }
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  if (header_bytes > kSafetensorsHeaderBytesMax) {
    return runtime::invalid_argument(std::string(name) + ": its header would be " +
                                     std::to_string(header_bytes) +
                                     " bytes long; this is not a safetensors file");
  }
  if (header_bytes > file.size() - sizeof(header_bytes)) {
    return runtime::invalid_argument(
        std::string(name) + ": its header of " + std::to_string(header_bytes) +
        " bytes goes beyond the end; the file is truncated, fetch it again");
  }
  SafetensorsHeader header;
  header.data_offset = sizeof(header_bytes) + header_bytes;
  HeaderHandler handler(header);
  const auto* text = reinterpret_cast<const char*>(file.data()) + sizeof(header_bytes);
  if (!nlohmann::json::sax_parse(text, text + header_bytes, &handler))
    return handler.status().with_context(name);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  Status status = check_entries(header.entries, file.size() - header.data_offset);
  if (!status.ok()) return status.with_context(name);
  return header;
}

}  // namespace rl
