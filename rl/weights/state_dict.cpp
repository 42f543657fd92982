#include "rl/weights/state_dict.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rl/weights/tensor_table.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// A model of 100,000 tensors takes 20 MB and 4 million instructions. Memory is a small multiple of
// the instructions.
constexpr std::size_t kPickleBytesMax = 128 << 20;
constexpr std::size_t kInstructionsMax = 16 << 20;
constexpr std::size_t kTensorsMax = 1 << 20;
constexpr std::size_t kStackMax = 1 << 20;  // torch.save puts at most 1000 pairs at once
constexpr std::size_t kDimensionsMax = 16;

/// Instructions of the pickle virtual machine by the names of Python's pickle.py.
enum class Op : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kBinFloat = 'G',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

enum class Kind : std::uint8_t {
  kMark,
  kNone,
  kInteger,
  kOther,
  kText,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kStorage,
  kTensor
};

/// One value. What it consists of lies in tables of the machine, so that values are small and
/// nothing is copied. A pickle that nests or refers to itself costs no recursion.
struct Value {
  Kind kind = Kind::kNone;
  std::uint32_t count = 0;  // of a text's bytes, of a tuple's elements
  std::int64_t number = 0;  // an integer; else where in the table of its kind
};

/// What a name that may occur stands for.
struct Global {
  enum class Does {
    kOrderedDict,
    kTensorV2,
    kTensorV3,
    kParameter,
    kStorage,
    kUntypedStorage,
    kDType
  };
  std::string_view name;
  Does does;
  DType dtype = DType::kF32;
};

constexpr auto kGlobals = std::to_array<Global>({
    {"collections OrderedDict", Global::Does::kOrderedDict},
    {"torch._utils _rebuild_tensor_v2", Global::Does::kTensorV2},
    {"torch._utils _rebuild_tensor_v3", Global::Does::kTensorV3},
    {"torch._utils _rebuild_parameter", Global::Does::kParameter},
    {"torch DoubleStorage", Global::Does::kStorage, DType::kF64},
    {"torch FloatStorage", Global::Does::kStorage, DType::kF32},
    {"torch HalfStorage", Global::Does::kStorage, DType::kF16},
    {"torch BFloat16Storage", Global::Does::kStorage, DType::kBF16},
    {"torch LongStorage", Global::Does::kStorage, DType::kI64},
    {"torch IntStorage", Global::Does::kStorage, DType::kI32},
    {"torch ShortStorage", Global::Does::kStorage, DType::kI16},
    {"torch CharStorage", Global::Does::kStorage, DType::kI8},
    {"torch ByteStorage", Global::Does::kStorage, DType::kU8},
    {"torch BoolStorage", Global::Does::kStorage, DType::kBool},
    {"torch.storage UntypedStorage", Global::Does::kUntypedStorage, DType::kU8},
    {"torch uint16", Global::Does::kDType, DType::kU16},
    {"torch uint32", Global::Does::kDType, DType::kU32},
    {"torch uint64", Global::Does::kDType, DType::kU64},
});

struct Storage {
  std::string_view key;
  DType dtype = DType::kF32;  // with untyped storages of bytes, kU8
  std::int64_t count = 0;
  bool untyped = false;
};

// A name of the file in a message: no control characters, and not without end.
std::string shown(std::string_view text) {
  constexpr std::size_t kShownMax = 200;
  std::string out(text.substr(0, kShownMax));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text.size() > kShownMax ? out + "..." : out;
}

// Whether a view of `shape`, `strides` and `offset` lies inside `count` elements and repeats none
// so often that it is larger than them.
bool fits(const PickledTensor& tensor) {
  if (!tensor_bytes(tensor.info.shape, tensor.info.dtype))
    return false;  // negative, or beyond any file
  if (tensor.offset < 0 || tensor.offset > tensor.storage_count) return false;
  const std::int64_t elements = tensor.info.element_count();
  if (elements == 0) return true;
  if (elements > tensor.storage_count) return false;
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    std::int64_t reach;
    if (tensor.strides[i] < 0 ||
        __builtin_mul_overflow(tensor.info.shape[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return false;
    }
  }
  return last < tensor.storage_count;
}

/// The pickle virtual machine. One function for each instruction of the format, hence their number.
class Machine {
 public:
  Machine(std::span<const std::byte> pickle, std::string_view name)
      : pickle_(pickle), name_(name) {}

  Result<std::vector<PickledTensor>> run() {
    if (pickle_.size() > kPickleBytesMax)
      return damaged("its data.pkl of " + std::to_string(pickle_.size()) +
                     " bytes is too long for a state dict");
    for (std::size_t steps = 0; !stopped_; ++steps) {
      if (steps == kInstructionsMax)
        return damaged("its data.pkl has too many instructions for a state dict");
      if (Status status = step(); !status.ok()) return status;
      if (stack_.size() > kStackMax)
        return damaged("its data.pkl stacks up too much for a state dict");
    }
    return take_tensors();
  }

 private:
  Status damaged(const std::string& why) const {
    return runtime::invalid_argument(std::string(name_) + ": " + why + "; fetch the file again");
  }
  Status truncated() const { return damaged("its data.pkl ends in the middle"); }
  Status misuse() const {
    return damaged("its data.pkl is not a valid pickle at byte " + std::to_string(at_));
  }
  Status refused(const std::string& what) const {
    return runtime::unimplemented(std::string(name_) + ": holds " + what +
                                  ", which is more than tensors and is refused, as it could run "
                                  "code. If you trust the file, load it with torch and "
                                  "save model.state_dict() alone, best as safetensors");
  }

  template <class T>
  bool read(T& value) {
    if (pickle_.size() - at_ < sizeof value) return false;
    std::memcpy(&value, pickle_.data() + at_, sizeof value);
    at_ += sizeof value;
    return true;
  }

  bool read_text(std::uint64_t bytes, std::string_view& text) {
    if (bytes > pickle_.size() - at_) return false;
    text = {reinterpret_cast<const char*>(pickle_.data()) + at_, static_cast<std::size_t>(bytes)};
    at_ += bytes;
    return true;
  }

  bool read_line(std::string_view& line) {
    const std::string_view rest(reinterpret_cast<const char*>(pickle_.data()) + at_,
                                pickle_.size() - at_);
    const std::size_t end = rest.find('\n');
    if (end == rest.npos) return false;
    line = rest.substr(0, end);
    at_ += end + 1;
    return true;
  }

  void push(Kind kind, std::int64_t number = 0, std::size_t count = 0) {
    stack_.push_back({kind, static_cast<std::uint32_t>(count), number});
  }

  // False when there is nothing above the last mark.
  bool pop(Value& value) {
    if (stack_.empty() || stack_.back().kind == Kind::kMark) return false;
    value = stack_.back();
    stack_.pop_back();
    return true;
  }

  // What stands above the last mark; the caller takes mark and values off the stack.
  std::optional<std::size_t> last_mark() const {
    for (std::size_t i = stack_.size(); i-- > 0;) {
      if (stack_[i].kind == Kind::kMark) return i;
    }
    return std::nullopt;
  }

  Status step() {
    std::uint8_t byte;
    if (!read(byte)) return truncated();
    switch (static_cast<Op>(byte)) {
      case Op::kProto: return check_protocol();
      case Op::kFrame: return skip<std::uint64_t>();
      case Op::kStop: stopped_ = true; return {};
      case Op::kMark: push(Kind::kMark); return {};
      case Op::kPop: return drop();
      case Op::kNone: push(Kind::kNone); return {};
      case Op::kNewTrue: push(Kind::kOther); return {};
      case Op::kNewFalse: push(Kind::kOther); return {};
      case Op::kBinFloat: push(Kind::kOther); return skip<double>();
      case Op::kBinInt: return push_integer<std::int32_t>();
      case Op::kBinInt1: return push_integer<std::uint8_t>();
      case Op::kBinInt2: return push_integer<std::uint16_t>();
      case Op::kLong1: return push_long();
      case Op::kShortBinUnicode: return push_text<std::uint8_t>();
      case Op::kBinUnicode: return push_text<std::uint32_t>();
      case Op::kBinUnicode8: return push_text<std::uint64_t>();
      case Op::kEmptyTuple: push(Kind::kTuple); return {};
      case Op::kTuple1: return make_tuple(1);
      case Op::kTuple2: return make_tuple(2);
      case Op::kTuple3: return make_tuple(3);
      case Op::kTuple: return make_marked_tuple();
      case Op::kEmptyList: push(Kind::kList); return {};
      case Op::kAppend: return append(stack_.empty() ? 0 : stack_.size() - 1);
      case Op::kAppends: return append_marked();
      case Op::kEmptyDict: new_dict(); return {};
      case Op::kSetItem:
        return set_items(stack_.size() < 2 ? 0 : stack_.size() - 2, /*marked=*/false);
      case Op::kSetItems: return set_marked_items();
      case Op::kBinPut: return put<std::uint8_t>();
      case Op::kLongBinPut: return put<std::uint32_t>();
      case Op::kMemoize: return remember(static_cast<std::uint32_t>(memo_.size()));
      case Op::kBinGet: return get<std::uint8_t>();
      case Op::kLongBinGet: return get<std::uint32_t>();
      case Op::kGlobal: return read_global();
      case Op::kStackGlobal: return take_global();
      case Op::kBinPersId: return load_storage();
      case Op::kReduce: return reduce();
      case Op::kBuild: return build();
    }
    constexpr char kDigits[] = "0123456789abcdef";
    return refused(std::string("the pickle instruction 0x") + kDigits[byte / 16] +
                   kDigits[byte % 16] + " at byte " + std::to_string(at_ - 1));
  }

  Status check_protocol() {
    std::uint8_t version;
    if (!read(version)) return truncated();
    return version >= 2 && version <= 5 ? Status()
                                        : refused("pickle protocol " + std::to_string(version));
  }

  template <class T>
  Status skip() {
    T ignored;
    return read(ignored) ? Status() : truncated();
  }

  Status drop() {
    if (stack_.empty()) return misuse();
    stack_.pop_back();
    return {};
  }

  Status set_marked_items() {
    const auto mark = last_mark();
    return mark ? set_items(*mark + 1, /*marked=*/true) : misuse();
  }

  Status read_global() {
    std::string_view module, member;
    if (!read_line(module) || !read_line(member)) return truncated();
    return push_global(module, member);
  }

  Status take_global() {
    Value module, member;
    if (!pop(member) || !pop(module) || module.kind != Kind::kText || member.kind != Kind::kText)
      return misuse();
    return push_global(text_of(module), text_of(member));
  }

  template <class T>
  Status push_integer() {
    T value;
    if (!read(value)) return truncated();
    push(Kind::kInteger, value);
    return {};
  }

  // Little-endian two's complement of any length up to 255 bytes.
  Status push_long() {
    std::uint8_t length;
    std::string_view digits;
    if (!read(length) || !read_text(length, digits)) return truncated();
    if (length > 8) {
      push(Kind::kOther);  // beyond any size; a caller that needs an integer says so
      return {};
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < digits.size(); ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(digits[i])} << (8 * i);
    const bool negative = length > 0 && (digits.back() & 0x80) != 0;
    if (negative && length < 8) value |= ~std::uint64_t{0} << (8 * length);
    push(Kind::kInteger, static_cast<std::int64_t>(value));
    return {};
  }

  template <class T>
  Status push_text() {
    T bytes;
    std::string_view text;
    if (!read(bytes) || !read_text(bytes, text)) return truncated();
    push(Kind::kText, text.data() - reinterpret_cast<const char*>(pickle_.data()), text.size());
    return {};
  }

  std::string_view text_of(const Value& value) const {
    return {reinterpret_cast<const char*>(pickle_.data()) + value.number, value.count};
  }

  std::span<const Value> elements_of(const Value& tuple) const {
    return std::span(tuple_elements_).subspan(static_cast<std::size_t>(tuple.number), tuple.count);
  }

  Status make_tuple(std::size_t count) {
    if (stack_.size() < count) return misuse();
    const std::size_t first = stack_.size() - count;
    for (std::size_t i = first; i < stack_.size(); ++i) {
      if (stack_[i].kind == Kind::kMark) return misuse();
    }
    const auto at = static_cast<std::int64_t>(tuple_elements_.size());
    tuple_elements_.insert(tuple_elements_.end(),
                           stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    push(Kind::kTuple, at, count);
    return {};
  }

  Status make_marked_tuple() {
    const auto mark = last_mark();
    if (!mark) return misuse();
    const std::size_t count = stack_.size() - *mark - 1;
    if (Status status = make_tuple(count); !status.ok()) return status;
    const Value tuple = stack_.back();
    stack_.resize(*mark);
    stack_.push_back(tuple);
    return {};
  }

  // Lists occur in what state dicts have on the side, of which nothing is kept.
  Status append(std::size_t first) {
    if (first == 0 || stack_[first - 1].kind != Kind::kList) return misuse();
    stack_.resize(first);
    return {};
  }

  Status append_marked() {
    const auto mark = last_mark();
    if (!mark) return misuse();
    stack_.resize(*mark);
    return !stack_.empty() && stack_.back().kind == Kind::kList ? Status() : misuse();
  }

  void new_dict() {
    push(Kind::kDict, static_cast<std::int64_t>(dicts_.size()));
    dicts_.emplace_back();
  }

  Status set_items(std::size_t first, bool marked) {
    const std::size_t below = marked ? first - 1 : first;
    if (below == 0 || stack_[below - 1].kind != Kind::kDict || (stack_.size() - first) % 2 != 0)
      return misuse();
    auto& dict = dicts_[static_cast<std::size_t>(stack_[below - 1].number)];
    for (std::size_t i = first; i < stack_.size(); i += 2) {
      if (stack_[i].kind == Kind::kMark || stack_[i + 1].kind == Kind::kMark) return misuse();
      dict.emplace_back(stack_[i], stack_[i + 1]);
    }
    stack_.resize(below);
    return {};
  }

  template <class T>
  Status put() {
    T index;
    return read(index) ? remember(index) : truncated();
  }

  Status remember(std::uint32_t index) {
    if (stack_.empty() || stack_.back().kind == Kind::kMark) return misuse();
    memo_[index] = stack_.back();
    return {};
  }

  template <class T>
  Status get() {
    T index;
    if (!read(index)) return truncated();
    const auto found = memo_.find(index);
    if (found == memo_.end()) return misuse();
    stack_.push_back(found->second);
    return {};
  }

  Status push_global(std::string_view module, std::string_view member) {
    const std::string name = std::string(module) + " " + std::string(member);
    for (std::size_t i = 0; i < kGlobals.size(); ++i) {
      if (kGlobals[i].name != name) continue;
      push(Kind::kGlobal, static_cast<std::int64_t>(i));
      return {};
    }
    return refused(shown(module) + "." + shown(member));
  }

  const Global* global_of(const Value& value) const {
    return value.kind == Kind::kGlobal ? &kGlobals[static_cast<std::size_t>(value.number)]
                                       : nullptr;
  }

  // ('storage', type, key, location, count): a file of the archive.
  Status load_storage() {
    Value id;
    if (!pop(id) || id.kind != Kind::kTuple || id.count != 5) return misuse();
    const auto parts = elements_of(id);
    const Global* type = global_of(parts[1]);
    const bool untyped = type != nullptr && type->does == Global::Does::kUntypedStorage;
    if (parts[0].kind != Kind::kText || text_of(parts[0]) != "storage" || type == nullptr ||
        (!untyped && type->does != Global::Does::kStorage) || parts[2].kind != Kind::kText ||
        parts[4].kind != Kind::kInteger || parts[4].number < 0) {
      return misuse();
    }
    push(Kind::kStorage, static_cast<std::int64_t>(storages_.size()));
    storages_.push_back({text_of(parts[2]), type->dtype, parts[4].number, untyped});
    return {};
  }

  Status reduce() {
    Value arguments, callee;
    if (!pop(arguments) || !pop(callee) || arguments.kind != Kind::kTuple) return misuse();
    const Global* global = global_of(callee);
    if (global == nullptr) return misuse();
    const auto given = elements_of(arguments);
    switch (global->does) {
      case Global::Does::kOrderedDict:
        if (!given.empty()) return refused("an OrderedDict made from arguments");
        new_dict();
        return {};
      case Global::Does::kTensorV2: return make_tensor(given, 6, nullptr);
      case Global::Does::kTensorV3:
        return given.size() < 7 || global_of(given[6]) == nullptr
                   ? misuse()
                   : make_tensor(given, 7, global_of(given[6]));
      case Global::Does::kParameter:
        if (given.size() != 3 || given[0].kind != Kind::kTensor) return misuse();
        stack_.push_back(given[0]);
        return {};
      case Global::Does::kStorage:
      case Global::Does::kUntypedStorage:
      case Global::Does::kDType: break;
    }
    return refused("a call of " + std::string(global->name));
  }

  // (storage, offset, shape, strides, requires_grad, hooks[, dtype][, metadata])
  Status make_tensor(std::span<const Value> given, std::size_t count, const Global* dtype) {
    if (given.size() < count || given.size() > count + 1 || given[0].kind != Kind::kStorage ||
        given[1].kind != Kind::kInteger)
      return misuse();
    const Storage& storage = storages_[static_cast<std::size_t>(given[0].number)];
    if (storage.untyped != (dtype != nullptr) ||
        (dtype != nullptr && dtype->does != Global::Does::kDType))
      return misuse();
    PickledTensor tensor;
    tensor.info.dtype = dtype != nullptr ? dtype->dtype : storage.dtype;
    tensor.storage = storage.key;
    tensor.storage_count =
        storage.untyped ? storage.count / dtype_block(tensor.info.dtype).bytes : storage.count;
    tensor.offset = given[1].number;
    if (!sizes_of(given[2], tensor.info.shape) || !sizes_of(given[3], tensor.strides) ||
        tensor.info.shape.size() != tensor.strides.size()) {
      return misuse();
    }
    if (tensors_.size() == kTensorsMax)
      return damaged("its data.pkl has too many tensors for a model");
    push(Kind::kTensor, static_cast<std::int64_t>(tensors_.size()));
    tensors_.push_back(std::move(tensor));
    return {};
  }

  bool sizes_of(const Value& value, std::vector<std::int64_t>& sizes) const {
    if (value.kind != Kind::kTuple || value.count > kDimensionsMax) return false;
    for (const Value& size : elements_of(value)) {
      if (size.kind != Kind::kInteger) return false;
      sizes.push_back(size.number);
    }
    return true;
  }

  // Attributes: those of a state dict (its _metadata) say which version of each class wrote it,
  // which nothing here needs.
  Status build() {
    Value state;
    if (!pop(state) || stack_.empty() || stack_.back().kind != Kind::kDict) return misuse();
    return state.kind == Kind::kDict ? Status() : refused("a dictionary with its own state");
  }

  Result<std::vector<PickledTensor>> take_tensors() {
    if (stack_.size() != 1) return misuse();
    if (stack_[0].kind != Kind::kDict)
      return not_a_state_dict(stack_[0].kind == Kind::kTensor ? "a tensor" : "no dictionary");
    const auto& dict = dicts_[static_cast<std::size_t>(stack_[0].number)];
    std::unordered_set<std::string_view> names;
    std::vector<PickledTensor> tensors;
    for (const auto& [key, value] : dict) {
      if (key.kind != Kind::kText) return not_a_state_dict("a dictionary whose keys are no names");
      const std::string name(text_of(key));
      if (value.kind != Kind::kTensor)
        return not_a_state_dict("a dictionary whose entry " + shown(name) + " is no tensor");
      if (tensors.size() == kTensorsMax)
        return damaged("its data.pkl has too many tensors for a model");
      if (!names.insert(text_of(key)).second)
        return damaged("tensor " + shown(name) + " is there twice");
      tensors.push_back(tensors_[static_cast<std::size_t>(
          value.number)]);  // copied: a tensor may stand under several names
      tensors.back().info.name = name;
      if (!fits(tensors.back())) {
        return damaged("tensor " + shown(name) + " says it has more elements than its storage of " +
                       std::to_string(tensors.back().storage_count));
      }
    }
    return tensors;
  }

  Status not_a_state_dict(const std::string& what) const {
    return runtime::invalid_argument(
        std::string(name_) + ": holds " + what +
        "; a model's weights are a state dict: save model.state_dict() alone");
  }

  std::span<const std::byte> pickle_;
  std::string_view name_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  std::vector<Value> stack_;
  std::unordered_map<std::uint32_t, Value> memo_;
  std::vector<Value> tuple_elements_;
  std::vector<std::vector<std::pair<Value, Value>>> dicts_;
  std::vector<Storage> storages_;
  std::vector<PickledTensor> tensors_;
};

}  // namespace

Result<std::vector<PickledTensor>> parse_state_dict(std::span<const std::byte> pickle,
                                                    std::string_view name) {
  return Machine(pickle, name).run();
}

}  // namespace rl
