#include "rl/config/key_table.h"

#include <algorithm>
#include <utility>

#include "rl/config/key_path.h"
#include "rl/config/override.h"
#include "rl/config/stage_keys.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// The key with each of its parts but the first as `*`.
std::vector<std::string> patterns_of(std::string_view key) {
  std::vector<std::string> patterns;
  for (std::size_t dot = key.find('.'); dot != std::string_view::npos;) {
    const std::size_t end = key.find('.', dot + 1);
    patterns.push_back(
        std::string(key.substr(0, dot + 1)) + "*" +
        std::string(end == std::string_view::npos ? std::string_view() : key.substr(end)));
    dot = end;
  }
  return patterns;
}

}  // namespace

KeyTable::KeyTable(std::string_view command, std::initializer_list<Part> parts,
                   std::span<const KeyAlias> aliases)
    : command_(command), aliases_(aliases) {
  std::map<std::string_view, std::size_t> places;
  const auto add = [&](const KeyInfo& row) {
    const auto [place, is_new] = places.emplace(row.key, rows_.size());
    if (is_new)
      rows_.push_back(row);
    else
      rows_[place->second] = row;
  };
  for (const Part& part : parts) {
    for (const UsedKey& used : part.used) {
      add({used.key, used.default_text, used.kind, KeySupport::kSupported, used.allowed,
           used.note});
      descriptions_[used.key] = used.what;
    }
    for (const UnusedKey& unused : part.unused)
      add({unused.key, unused.default_text, unused.kind, unused.support, unused.allowed,
           unused.why});
  }
  for (const KeyInfo& row : rows_) {
    by_key_.emplace(row.key, &row);
    if (!row.has_default()) continue;
    auto value = parse_override_value(row.default_text);
    CHECK(value.ok());  // the rows are ours
    nlohmann::ordered_json* place = make_place(defaults_, row.key);
    CHECK(place != nullptr);
    if (place->is_null()) *place = std::move(value).value();  // a section with its own keys stays
  }
}

const KeyInfo* KeyTable::find_row(std::string_view key) const {
  if (const auto row = by_key_.find(key); row != by_key_.end()) return row->second;
  for (const std::string& pattern : patterns_of(key)) {
    if (const auto row = by_key_.find(pattern); row != by_key_.end()) return row->second;
  }
  return nullptr;
}

const KeyInfo* KeyTable::find(std::string_view key) const {
  if (const KeyInfo* row = find_row(key)) return row;
  for (std::size_t dot = key.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = key.rfind('.', dot - 1)) {
    const KeyInfo* row = find_row(key.substr(0, dot));
    if (row != nullptr && row->kind == KeyKind::kMap) return row;
  }
  return nullptr;
}

bool KeyTable::is_section(std::string_view key) const {
  const auto has_keys = [&](const std::string& prefix) {
    const auto row = by_key_.lower_bound(prefix);
    return row != by_key_.end() && row->first.starts_with(prefix);
  };
  const std::vector<std::string> patterns = patterns_of(key);
  return has_keys(std::string(key) + ".") ||
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return has_keys(pattern + "."); });
}

std::string KeyTable::canonical(std::string_view key) const {
  const KeyAlias* best = nullptr;
  for (const KeyAlias& alias : aliases_) {
    const bool section = alias.old_name.ends_with('.');
    const bool matches = section ? key.starts_with(alias.old_name) : key == alias.old_name;
    if (matches && (best == nullptr || alias.old_name.size() > best->old_name.size()))
      best = &alias;
  }
  if (best == nullptr) return std::string(key);
  return std::string(best->name) + std::string(key.substr(best->old_name.size()));
}

std::string_view KeyTable::description(std::string_view key) const {
  const auto found = descriptions_.find(key);
  return found == descriptions_.end() ? std::string_view() : found->second;
}

const KeyTable* find_key_table(std::string_view command) {
  if (command == "train") return &train_keys();
  return find_stage_keys(command);
}

}  // namespace rl
