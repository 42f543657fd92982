// Typed reading of a JSON object that came from outside: the first problem is kept, so that a
// reader is a list of fields.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

/// A float as the decimal that was meant: 1e-05, not 9.999999747378752e-06. The float nearest to
/// the result is `value` again.
double shortest_decimal(float value);

/// Reads fields of one object; borrows it. A read with a problem returns a value in bounds, and
/// status() names file and key of the first one. A key whose value is null counts as absent, as in
/// Hugging Face configs.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string where);

  bool has(std::string_view key) const;

  /// Whether the key is there with the value null, for the few whose default is another.
  bool is_null(std::string_view key) const;

  /// The integer there, or `otherwise` when absent. Out of [least, most] is a problem.
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t least,
                       std::int64_t most);

  /// The same for a key that must be there.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most);

  /// A finite number (integers count), at least `least`.
  double number(std::string_view key, double otherwise, double least);

  bool boolean(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);

  /// One integer or a list of them: Hugging Face's `eos_token_id`. Empty when absent;
  /// -1 is none.
  std::vector<std::int32_t> token_ids(std::string_view key);

  /// A list of strings; empty when absent.
  std::vector<std::string> texts(std::string_view key);

  /// A list of exactly `count` finite numbers, each at least `least`; it must be there.
  std::vector<float> numbers(std::string_view key, std::size_t count, double least);

  /// The object there; an empty one when absent.
  const nlohmann::json& object(std::string_view key);

  /// Records that `key` has a value we can't compute: kUnimplemented "<where>: <key> = <value> is
  /// not supported (<cure>)".
  void refuse(std::string_view key, std::string_view cure);

  /// Refuses the key unless it is absent or equal to `expected`.
  void only(std::string_view key, const nlohmann::json& expected, std::string_view cure);

  /// Takes over the problem of a nested object's reader.
  void merge(const JsonFields& nested) { fail(nested.status()); }

  /// The first problem, or ok.
  const runtime::Status& status() const { return status_; }

 private:
  const nlohmann::json* find(std::string_view key) const;
  void wrong(std::string_view key, std::string_view expected);
  void fail(runtime::Status status);

  const nlohmann::json& object_;
  std::string where_;
  runtime::Status status_;
};

}  // namespace rl
