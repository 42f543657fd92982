#include "rl/data/row_stats.h"

#include <algorithm>
#include <optional>

#include "rl/template/python_string.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kValuesMax = 65536;
constexpr std::size_t kDifferentMax = 20;
constexpr std::size_t kShownBytesMax = 60;

// What the messages of a chat say; nothing for another list.
std::optional<std::string> chat_text(const ordered_json& list) {
  std::string text;
  for (const ordered_json& message : list) {
    if (!message.is_object()) return std::nullopt;
    for (const char* key : {"content", "value"}) {
      const auto found = message.find(key);
      if (found != message.end() && found->is_string())
        text += found->get_ref<const std::string&>();
    }
  }
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace

void Spread::add(std::int64_t value) {
  least_ = seen_ == 0 ? value : std::min(least_, value);
  most_ = seen_ == 0 ? value : std::max(most_, value);
  sum_ += static_cast<double>(value);
  if (seen_++ % every_ != 0) return;
  values_.push_back(value);
  if (values_.size() <= kValuesMax) return;
  // Every second one goes, so that what is left stays evenly spread.
  for (std::size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
  values_.resize((values_.size() + 1) / 2);
  every_ *= 2;
}

ordered_json Spread::to_json() const {
  if (empty()) return nullptr;
  std::vector<std::int64_t> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&sorted](double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  };
  return {{"min", least_},
          {"p10", at(0.1)},
          {"median", at(0.5)},
          {"p90", at(0.9)},
          {"p99", at(0.99)},
          {"max", most_},
          {"mean", sum_ / static_cast<double>(seen_)}};
}

void RowStats::measure(Column& column, const std::string& text) {
  column.characters.add(count_characters(text));
  if (count_tokens_) column.tokens.add(count_tokens_(text));
}

void RowStats::add(const ordered_json& row) {
  ++rows_;
  if (row.contains("chosen") && row.contains("rejected")) {
    ++pairs_;
    equal_pairs_ += row.at("chosen") == row.at("rejected") ? 1 : 0;
  }
  for (const auto& [name, value] : row.items()) {
    auto column = std::find_if(columns_.begin(), columns_.end(),
                               [&name = name](const Column& known) { return known.name == name; });
    if (column == columns_.end()) column = columns_.insert(columns_.end(), Column{.name = name});
    if (value.is_null()) continue;
    ++column->present;
    if (const runtime::Status status = column->type.add(value, name);
        !status.ok() && column->mixed.empty())
      column->mixed = status.message();
    if (value.is_array()) {
      column->elements.add(static_cast<std::int64_t>(value.size()));
      if (const std::optional<std::string> chat = chat_text(value)) measure(*column, *chat);
    }
    if (!value.is_string()) continue;
    const std::string& text = value.get_ref<const std::string&>();
    measure(*column, text);
    if (column->many_values) continue;
    ++column->values[text];
    column->many_values = text.size() > kShownBytesMax || column->values.size() > kDifferentMax;
  }
}

ordered_json RowStats::to_json() const {
  ordered_json columns = ordered_json::array();
  for (const Column& column : columns_) {
    ordered_json shown = {{"name", column.name},
                          {"type", column.mixed.empty() ? column.type.to_string() : "mixed"},
                          {"missing", rows_ - column.present}};
    if (!column.mixed.empty()) shown["mixed"] = column.mixed;
    if (!column.characters.empty()) shown["characters"] = column.characters.to_json();
    if (!column.tokens.empty()) shown["tokens"] = column.tokens.to_json();
    if (!column.elements.empty()) shown["elements"] = column.elements.to_json();
    if (!column.many_values && !column.values.empty()) shown["values"] = column.values;
    columns.push_back(std::move(shown));
  }
  ordered_json stats = {{"rows", rows_}, {"columns", std::move(columns)}};
  if (pairs_ > 0) stats["pairs"] = {{"count", pairs_}, {"equal", equal_pairs_}};
  return stats;
}

}  // namespace rl
