#include "runtime/control/resource_units.h"

#include <algorithm>
#include <cstdio>

namespace runtime {

namespace {

Status bad_amount(const std::string& name, double amount, const std::string& why) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15g", amount);
  return invalid_argument("resource '" + name + "' is " + text + why);
}

}  // namespace

Status check_amount(const std::string& name, double amount) {
  if (!std::isfinite(amount) || amount < 0 || amount > kResourceAmountMax)
    return bad_amount(name, amount, "; it must be a number from 0 to 1e14");
  if (amount > 0 && resource_units(amount) == 0)
    return bad_amount(name, amount, ", below the smallest share, 0.0001");
  return {};
}

Status check_resource_names(const ResourceMap& amounts) {
  if (amounts.size() > kResourceNamesMax)
    return invalid_argument(std::to_string(amounts.size()) + " resources are named; at most " +
                            std::to_string(kResourceNamesMax) + " may be");
  for (const auto& entry : amounts) {
    const std::string& name = entry.first;
    if (name.empty()) return invalid_argument("a resource needs a name");
    if (name.size() > kResourceNameBytesMax) {
      return invalid_argument("a resource's name has " + std::to_string(name.size()) +
                              " bytes, of at most " + std::to_string(kResourceNameBytesMax) + ": " +
                              name.substr(0, 40) + "...");
    }
    if (std::any_of(name.begin(), name.end(),
                    [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; })) {
      return invalid_argument("the name of a resource has control characters in it");
    }
  }
  return {};
}

Status check_resources(const ResourceMap& amounts) {
  if (Status status = check_resource_names(amounts); !status.ok()) return status;
  for (const auto& [name, amount] : amounts) {
    if (Status status = check_amount(name, amount); !status.ok()) return status;
  }
  return {};
}

std::string resource_text(std::int64_t units) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld", static_cast<long long>(units / kResourceUnitsPerOne));
  std::string out = text;
  if (const std::int64_t rest = units % kResourceUnitsPerOne; rest != 0) {
    std::snprintf(text, sizeof text, ".%04lld", static_cast<long long>(rest));
    out += text;
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out;
}

}  // namespace runtime
