#include "rl/weights/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rl/weights/gguf_scalar.h"
#include "rl/weights/mapped_file.h"
#include "rl/weights/tensor_table.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr std::uint64_t kNameBytesMax = 65535;  // of a key or tensor name, as the format says
constexpr std::uint32_t kGgufDimensionsMax = 8;
constexpr int kArrayDepthMax = 4;

// The format's tensor type numbers that we read, and names for the others that exist, for the error
// message.
struct StoredType {
  std::uint32_t number;
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr StoredType kStoredTypes[] = {
    {0, "F32", DType::kF32},    {1, "F16", DType::kF16},
    {2, "Q4_0", DType::kQ4_0},  {3, "Q4_1", DType::kQ4_1},
    {6, "Q5_0", DType::kQ5_0},  {7, "Q5_1", DType::kQ5_1},
    {8, "Q8_0", DType::kQ8_0},  {9, "Q8_1", {}},
    {10, "Q2_K", DType::kQ2_K}, {11, "Q3_K", DType::kQ3_K},
    {12, "Q4_K", DType::kQ4_K}, {13, "Q5_K", DType::kQ5_K},
    {14, "Q6_K", DType::kQ6_K}, {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},        {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},        {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},         {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},          {23, "IQ4_XS", {}},
    {24, "I8", DType::kI8},     {25, "I16", DType::kI16},
    {26, "I32", DType::kI32},   {27, "I64", DType::kI64},
    {28, "F64", DType::kF64},   {29, "IQ1_M", {}},
    {30, "BF16", DType::kBF16}, {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},          {39, "MXFP4", {}},
};

// A position in the file's bytes. Every read checks what is left first; after a failure nothing
// more is read.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t position() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }

  template <class T>
  bool read(T& value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  bool take(std::uint64_t count, std::span<const std::byte>& taken) {
    if (left() < count) return false;
    taken = bytes_.subspan(at_, count);
    at_ += count;
    return true;
  }

  bool read_string(std::string_view& value) {
    std::uint64_t length;
    std::span<const std::byte> taken;
    if (!read(length) || !take(length, taken)) return false;
    value = {reinterpret_cast<const char*>(taken.data()), taken.size()};
    return true;
  }

  std::span<const std::byte> since(std::uint64_t begin) const {
    return bytes_.subspan(begin, at_ - begin);
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
};

// Keys and tensor names end up in error messages and maps: plain ASCII only, as the format asks.
bool printable(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, std::string name)
      : file_(file), name_(std::move(name)), cursor_(file) {}

  Status parse() {
    std::uint64_t tensor_count = 0;
    std::uint64_t entry_count = 0;
    Status status = parse_preamble(tensor_count, entry_count);
    if (status.ok()) status = parse_entries(entry_count);
    if (status.ok()) status = parse_tensors(tensor_count);
    return status;
  }

  std::vector<GgufEntry> entries;
  std::unordered_map<std::string, std::size_t> entry_index;
  std::vector<TensorInfo> tensors;
  std::vector<TensorBytes> data;

 private:
  Status damaged(const std::string& what) const {
    return runtime::invalid_argument(name_ + ": " + what);
  }
  Status truncated(const std::string& where) const {
    return damaged("ends inside " + where + "; the file is truncated, fetch it again");
  }

  Status parse_preamble(std::uint64_t& tensor_count, std::uint64_t& entry_count) {
    static_assert(std::endian::native == std::endian::little,
                  "values are used as they lie in the file");
    std::uint32_t magic = 0;
    std::uint32_t version = 0;
    if (!cursor_.read(magic) || magic != 0x46554747)
      return damaged("does not begin with GGUF; this is not a GGUF file");
    if (!cursor_.read(version)) return truncated("the header");
    if (version >= 1 << 16) {
      return runtime::unimplemented(
          name_ +
          ": is a big-endian GGUF file, which is not supported; convert it to little-endian");
    }
    if (version != 2 && version != 3) {
      return runtime::unimplemented(name_ + ": GGUF version " + std::to_string(version) +
                                    " is not supported (2 and 3 are)");
    }
    if (!cursor_.read(tensor_count) || !cursor_.read(entry_count)) return truncated("the header");
    // The least that one entry or tensor takes; a count beyond it is a lie, found before anything
    // is read.
    constexpr std::uint64_t kEntryBytesMin = 8 + 4 + 1;
    constexpr std::uint64_t kTensorBytesMin = 8 + 4 + 4 + 8;
    if (entry_count > cursor_.left() / kEntryBytesMin) {
      return damaged("says it has " + std::to_string(entry_count) +
                     " metadata entries, more than fit in it");
    }
    if (tensor_count > cursor_.left() / kTensorBytesMin) {
      return damaged("says it has " + std::to_string(tensor_count) +
                     " tensors, more than fit in it");
    }
    return {};
  }

  Status parse_entries(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string where = "metadata entry " + std::to_string(i);
      std::string_view key;
      std::uint32_t type;
      if (!cursor_.read_string(key)) return truncated(where);
      if (!printable(key)) return damaged(where + " has a key that is not plain ASCII");
      if (!cursor_.read(type)) return truncated("metadata key " + std::string(key));
      auto value = parse_value(static_cast<GgufType>(type), "metadata key " + std::string(key));
      if (!value.ok()) return value.status();
      if (!entry_index.emplace(key, entries.size()).second)
        return damaged("metadata key " + std::string(key) + " occurs twice");
      entries.push_back({std::string(key), std::move(*value)});
    }
    return {};
  }

  Result<GgufValue> parse_value(GgufType type, const std::string& where) {
    if (type == GgufType::kString) {
      std::string_view text;
      if (!cursor_.read_string(text)) return truncated(where);
      return GgufValue(type, text);
    }
    if (type == GgufType::kArray) {
      std::uint32_t element_type;
      std::uint64_t count;
      if (!cursor_.read(element_type) || !cursor_.read(count)) return truncated(where);
      const std::uint64_t begin = cursor_.position();
      Status status = skip_elements(static_cast<GgufType>(element_type), count, where, 1);
      if (!status.ok()) return status;
      return GgufValue(type,
                       GgufArray(static_cast<GgufType>(element_type), count, cursor_.since(begin)));
    }
    const std::size_t width = gguf_scalar_bytes(type);
    if (width == 0) return unknown_type(type, where);
    std::span<const std::byte> bytes;
    if (!cursor_.take(width, bytes)) return truncated(where);
    return GgufValue(type, decode_gguf_scalar(type, bytes.data()));
  }

  // Walks over an array's elements, checking that they are there.
  Status skip_elements(GgufType type, std::uint64_t count, const std::string& where, int depth) {
    const std::size_t width = gguf_scalar_bytes(type);
    if (width == 0 && type != GgufType::kString && type != GgufType::kArray)
      return unknown_type(type, where);
    const std::uint64_t bytes_min = width != 0 ? width : type == GgufType::kString ? 8 : 12;
    if (count > cursor_.left() / bytes_min) {
      return damaged(where + " says it has " + std::to_string(count) +
                     " elements, more than fit in the file");
    }
    std::span<const std::byte> skipped;
    if (width != 0) return cursor_.take(count * width, skipped) ? Status() : truncated(where);
    if (type == GgufType::kArray && depth == kArrayDepthMax)
      return damaged(where + " nests arrays too deeply");
    for (std::uint64_t i = 0; i < count; ++i) {
      if (type == GgufType::kString) {
        std::string_view text;
        if (!cursor_.read_string(text)) return truncated(where);
        continue;
      }
      std::uint32_t element_type;
      std::uint64_t element_count;
      if (!cursor_.read(element_type) || !cursor_.read(element_count)) return truncated(where);
      Status status =
          skip_elements(static_cast<GgufType>(element_type), element_count, where, depth + 1);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status unknown_type(GgufType type, const std::string& where) const {
    return damaged(where + " has the unknown value type " +
                   std::to_string(static_cast<std::uint32_t>(type)));
  }

  Status parse_tensors(std::uint64_t count) {
    std::vector<std::uint64_t> offsets;
    std::unordered_set<std::string> names;
    for (std::uint64_t i = 0; i < count; ++i) {
      TensorInfo info;
      std::uint64_t offset = 0;
      Status status = parse_tensor(i, info, offset);
      if (!status.ok()) return status;
      if (!names.insert(info.name).second) return damaged("tensor " + info.name + " occurs twice");
      tensors.push_back(std::move(info));
      offsets.push_back(offset);
    }
    return locate(offsets);
  }

  Status parse_tensor(std::uint64_t index, TensorInfo& info, std::uint64_t& offset) {
    const std::string where = "the description of tensor " + std::to_string(index);
    std::string_view name;
    std::uint32_t dimensions;
    std::uint32_t type;
    if (!cursor_.read_string(name)) return truncated(where);
    if (!printable(name))
      return damaged("tensor " + std::to_string(index) + " has a name that is not plain ASCII");
    info.name = name;
    if (!cursor_.read(dimensions)) return truncated(where);
    if (dimensions > kGgufDimensionsMax) {
      return damaged("tensor " + info.name + " says it has " + std::to_string(dimensions) +
                     " dimensions");
    }
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      std::uint64_t extent;
      if (!cursor_.read(extent)) return truncated(where);
      info.shape.push_back(static_cast<std::int64_t>(
          extent));  // beyond 2^63 it becomes negative, which tensor_bytes refuses
    }
    std::reverse(info.shape.begin(), info.shape.end());
    if (!cursor_.read(type) || !cursor_.read(offset)) return truncated(where);
    const auto* known =
        std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                     [type](const StoredType& stored) { return stored.number == type; });
    if (known == std::end(kStoredTypes)) {
      return damaged("tensor " + info.name + " has the unknown type " + std::to_string(type));
    }
    if (!known->dtype) {
      return runtime::unimplemented(
          name_ + ": tensor " + info.name + " is stored as " + std::string(known->name) +
          ", which is not supported; take a file of F16, BF16, Q4_0 to Q8_0 or Q2_K to Q6_K");
    }
    info.dtype = *known->dtype;
    return {};
  }

  // Turns offsets (from the aligned end of the descriptions) into byte ranges, and checks them.
  Status locate(const std::vector<std::uint64_t>& offsets) {
    std::uint64_t alignment = 32;
    if (auto found = entry_index.find("general.alignment"); found != entry_index.end()) {
      auto value = entries[found->second].value.as_integer();
      if (!value || *value < 1 || *value > 1 << 20 ||
          !std::has_single_bit(static_cast<std::uint64_t>(*value))) {
        return damaged("general.alignment is not a power of two up to 2^20");
      }
      alignment = static_cast<std::uint64_t>(*value);
    }
    const std::uint64_t data_begin = (cursor_.position() + alignment - 1) / alignment * alignment;
    const std::uint64_t data_bytes = data_begin <= file_.size() ? file_.size() - data_begin : 0;
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string what = "tensor " + tensors[i].name;
      auto bytes = tensor_bytes(tensors[i].shape, tensors[i].dtype);
      if (!bytes)
        return damaged(what +
                       " has a shape that no file can hold, or rows that are not whole blocks");
      if (offsets[i] % alignment != 0)
        return damaged(what + " does not start at a multiple of " + std::to_string(alignment));
      if (offsets[i] > data_bytes || *bytes > data_bytes - offsets[i]) {
        return damaged(what + " goes beyond the end; the file is truncated, fetch it again");
      }
      data.push_back(*bytes == 0 ? std::span<const std::byte>()
                                 : file_.subspan(data_begin + offsets[i], *bytes));
      if (*bytes != 0) order.emplace_back(offsets[i], i);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 1; i < order.size(); ++i) {
      const auto [begin, tensor] = order[i - 1];
      if (order[i].first - begin < data[tensor].data.size()) {
        return damaged("tensor " + tensors[order[i].second].name + " overlaps tensor " +
                       tensors[tensor].name);
      }
    }
    return {};
  }

  std::span<const std::byte> file_;
  std::string name_;
  Cursor cursor_;
};

class MappedGguf final : public GgufFile {
 public:
  static Result<std::unique_ptr<GgufFile>> make(MappedFile file, std::span<const std::byte> bytes,
                                                std::string name) {
    Parser parser(bytes, name);
    Status status = parser.parse();
    if (!status.ok()) return status;
    return std::unique_ptr<GgufFile>(
        new MappedGguf(std::move(file), std::move(name), std::move(parser)));
  }

  const std::vector<TensorInfo>& tensors() const override { return table_.tensors(); }
  const TensorInfo* find(std::string_view name) const override { return table_.find(name); }
  Status read_f32(std::string_view name, std::span<float> out) const override {
    return table_.read_f32(name_, name, out, {&file_, 1});
  }
  Status read_f32_range(std::string_view name, std::int64_t first,
                        std::span<float> out) const override {
    return table_.read_f32_range(name_, name, first, out, {&file_, 1});
  }
  const std::vector<GgufEntry>& entries() const override { return entries_; }
  const GgufValue* metadata(std::string_view key) const override {
    auto found = entry_index_.find(std::string(key));
    return found == entry_index_.end() ? nullptr : &entries_[found->second].value;
  }
  const std::string& name() const override { return name_; }

 private:
  MappedGguf(MappedFile file, std::string name, Parser parser)
      : file_(std::move(file)),
        name_(std::move(name)),
        entries_(std::move(parser.entries)),
        entry_index_(std::move(parser.entry_index)),
        table_(std::move(parser.tensors), std::move(parser.data)) {}

  MappedFile file_;
  std::string name_;
  std::vector<GgufEntry> entries_;
  std::unordered_map<std::string, std::size_t> entry_index_;
  TensorTable table_;
};

// The value of a required key through one of GgufValue's accessors.
template <class T, class Access>
Result<T> required(const GgufFile& file, std::string_view key, std::string_view wanted,
                   Access access) {
  const GgufValue* value = file.metadata(key);
  if (value == nullptr)
    return runtime::not_found(file.name() + ": metadata key " + std::string(key) + " is missing");
  std::optional<T> converted = access(*value);
  if (converted) return std::move(*converted);
  std::string found(gguf_type_name(value->type()));
  if (const GgufArray* array = value->as_array())
    found += " of " + std::string(gguf_type_name(array->element_type()));
  return runtime::invalid_argument(file.name() + ": metadata key " + std::string(key) +
                                   " is of type " + found + ", not " + std::string(wanted));
}

template <class T>
using Elements = std::optional<std::vector<T>>;

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  const auto bytes = file->bytes();
  return MappedGguf::make(std::move(*file), bytes, path.string());
}

Result<std::unique_ptr<GgufFile>> GgufFile::parse(std::span<const std::byte> bytes,
                                                  std::string_view name) {
  return MappedGguf::make(MappedFile(), bytes, std::string(name));
}

Result<std::int64_t> GgufFile::integer(std::string_view key) const {
  return required<std::int64_t>(*this, key, "integer",
                                [](const GgufValue& value) { return value.as_integer(); });
}

Result<double> GgufFile::number(std::string_view key) const {
  return required<double>(*this, key, "number",
                          [](const GgufValue& value) { return value.as_number(); });
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  return required<bool>(*this, key, "bool", [](const GgufValue& value) { return value.as_bool(); });
}

Result<std::string_view> GgufFile::string(std::string_view key) const {
  return required<std::string_view>(*this, key, "string",
                                    [](const GgufValue& value) { return value.as_string(); });
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  return required<std::vector<std::string_view>>(
      *this, key, "array of string", [](const GgufValue& value) {
        return value.as_array() == nullptr ? Elements<std::string_view>()
                                           : value.as_array()->strings();
      });
}

Result<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  return required<std::vector<std::int64_t>>(
      *this, key, "array of integer", [](const GgufValue& value) {
        return value.as_array() == nullptr ? Elements<std::int64_t>()
                                           : value.as_array()->integers();
      });
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  return required<std::vector<double>>(*this, key, "array of number", [](const GgufValue& value) {
    return value.as_array() == nullptr ? Elements<double>() : value.as_array()->numbers();
  });
}

}  // namespace rl
