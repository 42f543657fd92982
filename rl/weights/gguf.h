// GGUF: a header of typed key-value metadata and tensor descriptions, then aligned tensor bytes
// (versions 2 and 3, little-endian). Metadata is not copied: strings and arrays are views of the
// mapped file and live as long as the GgufFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// The value types of the format, with its numbers.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

std::string_view gguf_type_name(GgufType type);

/// `count` elements of one type, still encoded. Decoding is asked for by type; nullopt when the
/// elements are of another one.
class GgufArray {
 public:
  GgufArray(GgufType element_type, std::uint64_t count, std::span<const std::byte> bytes)
      : element_type_(element_type), count_(count), bytes_(bytes) {}

  GgufType element_type() const { return element_type_; }
  std::uint64_t size() const { return count_; }
  std::optional<std::vector<std::string_view>> strings() const;
  std::optional<std::vector<std::int64_t>> integers()
      const;  // any integer type, or bool; u64 above 2^63 - 1 gives nullopt
  std::optional<std::vector<double>> numbers() const;  // any integer or float type

 private:
  GgufType element_type_;
  std::uint64_t count_;
  std::span<const std::byte> bytes_;
};

/// One metadata value. The accessors convert between widths where nothing is lost and give nullopt
/// (or null) otherwise.
class GgufValue {
 public:
  using Storage =
      std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;
  GgufValue(GgufType type, Storage value) : type_(type), value_(std::move(value)) {}

  GgufType type() const { return type_; }
  std::optional<std::int64_t> as_integer() const;
  std::optional<double> as_number() const;  // integers too
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;
  const GgufArray* as_array() const { return std::get_if<GgufArray>(&value_); }

 private:
  GgufType type_;
  Storage value_;
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

/// A memory-mapped GGUF file. Tensor names stay as in the file ("blk.0.attn_q.weight"); shapes are
/// row-major.
class GgufFile : public WeightSource {
 public:
  /// Maps the file and checks the whole header: every count, length and offset against the file's
  /// size before anything is allocated. Errors name the file and the key or tensor. kNotFound: no
  /// such file. kInvalidArgument: not GGUF, or damaged. kUnimplemented: a version, byte order or
  /// quantisation that we do not read.
  static runtime::Result<std::unique_ptr<GgufFile>> open(const std::filesystem::path& path);

  /// As open, on bytes in memory, which must outlive the result. `name` is for error messages.
  static runtime::Result<std::unique_ptr<GgufFile>> parse(std::span<const std::byte> bytes,
                                                          std::string_view name);

  /// All metadata, in file order.
  virtual const std::vector<GgufEntry>& entries() const = 0;

  /// Null when there is no such key.
  virtual const GgufValue* metadata(std::string_view key) const = 0;

  /// The file's name, as error messages give it.
  virtual const std::string& name() const = 0;

  /// Typed lookups of keys that must be there. Errors name the file, the key and the type found:
  /// kNotFound, kInvalidArgument.
  runtime::Result<std::int64_t> integer(std::string_view key) const;
  runtime::Result<double> number(std::string_view key) const;
  runtime::Result<bool> boolean(std::string_view key) const;
  runtime::Result<std::string_view> string(std::string_view key) const;
  runtime::Result<std::vector<std::string_view>> strings(std::string_view key) const;
  runtime::Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  runtime::Result<std::vector<double>> numbers(std::string_view key) const;
};

}  // namespace rl
