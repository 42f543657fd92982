// `--filter key=value` of the commands that list things.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/result.h"

namespace placement {

using Filters = std::vector<std::pair<std::string, std::string>>;

/// Errors: kInvalidArgument unless each is KEY=VALUE.
runtime::Result<Filters> parse_filters(const std::vector<std::string>& lines);

/// Whether `example` has the fields that the filters name ("labels.zone" is the entry zone of the
/// field labels). Errors: kInvalidArgument, naming the field, `what` (in the plural) and the fields
/// there are.
runtime::Status check_filters(const Filters& filters, const nlohmann::ordered_json& example,
                              const std::string& what);

/// Whether all filters hold. Of ids the first digits are enough.
bool matches(const nlohmann::ordered_json& item, const Filters& filters);

}  // namespace placement
