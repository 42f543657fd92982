// Statistics of rows by column, for `starling data stats`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rl/data/row_type.h"

namespace rl {

/// Counts as a distribution: exact up to 65,536 of them, beyond that of as many, evenly spread over
/// all.
class Spread {
 public:
  void add(std::int64_t value);
  bool empty() const { return seen_ == 0; }
  /// {"min", "p10", "median", "p90", "p99", "max", "mean"}.
  nlohmann::ordered_json to_json() const;

 private:
  std::vector<std::int64_t> values_;
  std::int64_t seen_ = 0, every_ = 1, least_ = 0, most_ = 0;
  double sum_ = 0;
};

class RowStats {
 public:
  using CountTokens = std::function<std::int64_t(std::string_view)>;

  /// With `count_tokens`, texts are measured in tokens too; of a chat its messages together.
  explicit RowStats(CountTokens count_tokens = nullptr) : count_tokens_(std::move(count_tokens)) {}

  void add(const nlohmann::ordered_json& row);
  std::int64_t rows() const { return rows_; }
  /// {"rows", "columns": [{"name", "type", "missing", "characters", "tokens", "elements",
  /// "values"}]}. Texts and chats have "characters", lists have "elements". Texts with at most 20
  /// different ones have "values": how often each occurs. Where rows have chosen and rejected
  /// responses: {"pairs": {"count", "equal"}}. A column whose values have no type in common is
  /// "mixed", and says why.
  nlohmann::ordered_json to_json() const;

 private:
  struct Column {
    std::string name;
    RowType type = {};
    std::string mixed = {};
    std::int64_t present = 0;
    Spread characters = {}, tokens = {}, elements = {};
    std::map<std::string, std::int64_t> values = {};
    bool many_values = false;
  };
  void measure(Column& column, const std::string& text);

  CountTokens count_tokens_;
  std::vector<Column> columns_;
  std::int64_t rows_ = 0, pairs_ = 0, equal_pairs_ = 0;
};

}  // namespace rl
