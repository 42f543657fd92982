#include "rl/data/arrow/json_value.h"

#include <arrow/array/array_dict.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include <cmath>
#include <cstdint>

#include "rl/data/json_text.h"

namespace rl {
namespace {

using arrow::internal::checked_cast;
using nlohmann::ordered_json;
using runtime::Result;

template <class ArrayType>
ordered_json number(const arrow::Array& array, std::int64_t index) {
  return checked_cast<const ArrayType&>(array).Value(index);
}

template <class ArrayType>
ordered_json text(const arrow::Array& array, std::int64_t index) {
  return std::string(checked_cast<const ArrayType&>(array).GetView(index));
}

/// Half precision, by its bits.
ordered_json half_float(const arrow::Array& array, std::int64_t index) {
  const std::uint16_t bits = checked_cast<const arrow::HalfFloatArray&>(array).Value(index);
  const int exponent = (bits >> 10) & 0x1F, fraction = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1F) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

Result<ordered_json> list(const arrow::Array& values, std::int64_t begin, std::int64_t count) {
  ordered_json elements = ordered_json::array();
  for (std::int64_t i = begin; i < begin + count; ++i) {
    Result<ordered_json> value = arrow_value(values, i);
    if (!value.ok()) return value;
    elements.push_back(std::move(*value));
  }
  return elements;
}

template <class ListType>
Result<ordered_json> list_at(const arrow::Array& array, std::int64_t index) {
  const auto& lists = checked_cast<const ListType&>(array);
  return list(*lists.values(), lists.value_offset(index), lists.value_length(index));
}

Result<ordered_json> map_at(const arrow::MapArray& maps, std::int64_t index) {
  ordered_json object = ordered_json::object();
  for (std::int64_t i = maps.value_offset(index);
       i < maps.value_offset(index) + maps.value_length(index); ++i) {
    const Result<ordered_json> key = arrow_value(*maps.keys(), i);
    if (!key.ok()) return key;
    Result<ordered_json> value = arrow_value(*maps.items(), i);
    if (!value.ok()) return value;
    object[json_as_text(*key)] = std::move(*value);
  }
  return object;
}

}  // namespace

Result<ordered_json> arrow_value(const arrow::Array& array, std::int64_t index) {
  if (array.IsNull(index)) return ordered_json();
  switch (array.type_id()) {
    case arrow::Type::NA: return ordered_json();
    case arrow::Type::BOOL: return number<arrow::BooleanArray>(array, index);
    case arrow::Type::INT8: return number<arrow::Int8Array>(array, index);
    case arrow::Type::INT16: return number<arrow::Int16Array>(array, index);
    case arrow::Type::INT32: return number<arrow::Int32Array>(array, index);
    case arrow::Type::INT64: return number<arrow::Int64Array>(array, index);
    case arrow::Type::UINT8: return number<arrow::UInt8Array>(array, index);
    case arrow::Type::UINT16: return number<arrow::UInt16Array>(array, index);
    case arrow::Type::UINT32: return number<arrow::UInt32Array>(array, index);
    case arrow::Type::UINT64: return number<arrow::UInt64Array>(array, index);
    case arrow::Type::HALF_FLOAT: return half_float(array, index);
    case arrow::Type::FLOAT: return number<arrow::FloatArray>(array, index);
    case arrow::Type::DOUBLE: return number<arrow::DoubleArray>(array, index);
    case arrow::Type::STRING: return text<arrow::StringArray>(array, index);
    case arrow::Type::LARGE_STRING: return text<arrow::LargeStringArray>(array, index);
    case arrow::Type::STRING_VIEW: return text<arrow::StringViewArray>(array, index);
    case arrow::Type::BINARY: return text<arrow::BinaryArray>(array, index);
    case arrow::Type::LARGE_BINARY: return text<arrow::LargeBinaryArray>(array, index);
    case arrow::Type::FIXED_SIZE_BINARY: return text<arrow::FixedSizeBinaryArray>(array, index);
    case arrow::Type::LIST: return list_at<arrow::ListArray>(array, index);
    case arrow::Type::LARGE_LIST: return list_at<arrow::LargeListArray>(array, index);
    case arrow::Type::FIXED_SIZE_LIST: return list_at<arrow::FixedSizeListArray>(array, index);
    case arrow::Type::MAP: return map_at(checked_cast<const arrow::MapArray&>(array), index);
    case arrow::Type::STRUCT: {
      const auto& structs = checked_cast<const arrow::StructArray&>(array);
      ordered_json object = ordered_json::object();
      for (int field = 0; field < structs.num_fields(); ++field) {
        Result<ordered_json> value = arrow_value(*structs.field(field), index);
        if (!value.ok()) return value;
        object[structs.struct_type()->field(field)->name()] = std::move(*value);
      }
      return object;
    }
    case arrow::Type::DICTIONARY: {
      const auto& coded = checked_cast<const arrow::DictionaryArray&>(array);
      return arrow_value(*coded.dictionary(), coded.GetValueIndex(index));
    }
    case arrow::Type::EXTENSION:
      return arrow_value(*checked_cast<const arrow::ExtensionArray&>(array).storage(), index);
    default: break;
  }
  const auto scalar = array.GetScalar(index);  // dates, times, decimals
  if (!scalar.ok())
    return runtime::unimplemented("values of type " + array.type()->ToString() +
                                  " have no form in JSON");
  return ordered_json((*scalar)->ToString());
}

}  // namespace rl
