#include "placement/app/cli_filter.h"

#include <algorithm>

namespace placement {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIds[] = {"id", "node", "job", "actor", "worker", "owner_node"};

bool is_id(const std::string& key) {
  return std::any_of(std::begin(kIds), std::end(kIds), [&](const char* id) { return key == id; });
}

/// "labels.zone" into "labels" and "zone"; the second is empty without a dot.
std::pair<std::string, std::string> parts(const std::string& key) {
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? std::pair(key, std::string())
                                  : std::pair(key.substr(0, dot), key.substr(dot + 1));
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

runtime::Result<Filters> parse_filters(const std::vector<std::string>& lines) {
  Filters filters;
  for (const std::string& line : lines) {
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string::npos)
      return runtime::invalid_argument("--filter " + line + ": expected FIELD=VALUE");
    filters.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return filters;
}

runtime::Status check_filters(const Filters& filters, const Json& example,
                              const std::string& what) {
  for (const auto& [key, value] : filters) {
    const auto [field, entry] = parts(key);
    const auto found = example.find(field);
    const bool fits =
        found != example.end() && !found->is_array() && found->is_object() == !entry.empty();
    if (fits) continue;
    std::string fields;
    for (const auto& [name, known] : example.items()) {
      if (!known.is_array())
        fields += (fields.empty() ? "" : ", ") + name + (known.is_object() ? ".NAME" : "");
    }
    return runtime::invalid_argument(what + " have no field '" + key +
                                     "' to filter by; there are " + fields);
  }
  return {};
}

bool matches(const Json& item, const Filters& filters) {
  return std::all_of(filters.begin(), filters.end(), [&](const auto& filter) {
    const auto& [key, wanted] = filter;
    const auto [field, entry] = parts(key);
    auto found = item.find(field);
    if (found == item.end()) return false;
    const Json* value = &*found;
    if (!entry.empty()) {
      auto inner = value->find(entry);
      if (inner == value->end()) return false;
      value = &*inner;
    }
    const std::string text = value_text(*value);
    return is_id(field) ? !wanted.empty() && text.starts_with(wanted) : text == wanted;
  });
}

}  // namespace placement
