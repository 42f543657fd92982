#include "placement/resource/resources.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace placement {

using runtime::ResourceMap;
using runtime::Result;
using runtime::Status;

namespace {

enum class Rounding { kUp, kDown };

// Memory in GB with two decimals: what is wanted rounded up, what is there rounded down.
std::string amount_text(const std::string& name, std::int64_t units, Rounding rounding) {
  constexpr std::int64_t kHundredth = 10'000'000 * Resources::kUnitsPerOne;  // of a GB
  if (name != "memory" || units < kHundredth) return runtime::resource_text(units);
  const std::int64_t hundredths =
      units / kHundredth + (rounding == Rounding::kUp && units % kHundredth != 0 ? 1 : 0);
  return runtime::resource_text(hundredths * (Resources::kUnitsPerOne / 100)) + " GB";
}

}  // namespace

Result<Resources> Resources::from_map(const ResourceMap& amounts) {
  Resources resources;
  for (const auto& [name, amount] : amounts) {
    if (name.empty()) return runtime::invalid_argument("a resource needs a name");
    if (Status status = runtime::check_amount(name, amount); !status.ok()) return status;
    if (const std::int64_t units = runtime::resource_units(amount); units > 0)
      resources.units_[name] = units;
  }
  return resources;
}

ResourceMap Resources::to_map() const {
  ResourceMap amounts;
  for (const auto& [name, units] : units_)
    amounts[name] = static_cast<double>(units) / kUnitsPerOne;
  return amounts;
}

std::int64_t Resources::units(const std::string& name) const {
  auto found = units_.find(name);
  return found == units_.end() ? 0 : found->second;
}

bool Resources::covers(const Resources& demand) const {
  return std::all_of(demand.units_.begin(), demand.units_.end(),
                     [this](const auto& entry) { return units(entry.first) >= entry.second; });
}

Resources& Resources::operator+=(const Resources& other) {
  for (const auto& [name, units] : other.units_) units_[name] += units;
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  CHECK(covers(other));
  for (const auto& [name, units] : other.units_) {
    auto found = units_.find(name);
    found->second -= units;
    if (found->second == 0) units_.erase(found);
  }
  return *this;
}

std::size_t Resources::times(const Resources& demand) const {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const auto& [name, wanted] : demand.units_)
    fewest = std::min(fewest, static_cast<std::size_t>(units(name) / wanted));
  return fewest;
}

Resources Resources::multiplied(std::size_t factor) const {
  Resources product;
  if (factor == 0) return product;
  for (const auto& [name, units] : units_) {
    const bool overflows =
        __builtin_mul_overflow(units, static_cast<std::int64_t>(factor), &product.units_[name]);
    CHECK(!overflows);
  }
  return product;
}

std::size_t Resources::unneeded_special(const Resources& demand) const {
  return static_cast<std::size_t>(
      std::count_if(units_.begin(), units_.end(), [&](const auto& entry) {
        return entry.first != "CPU" && entry.first != "memory" && demand.units(entry.first) == 0;
      }));
}

double Resources::utilisation_of(const Resources& total, const Resources& demand) const {
  double most = 0;
  for (const auto& [name, offered] : total.units_) {
    if (!demand.empty() && demand.units(name) == 0) continue;
    most = std::max(most, 1.0 - static_cast<double>(units(name)) / static_cast<double>(offered));
  }
  return most;
}

double Resources::utilisation_with(const Resources& total, const Resources& demand) const {
  double most = 0;
  for (const auto& [name, offered] : total.units_) {
    const std::int64_t wanted = demand.units(name);
    if (!demand.empty() && wanted == 0) continue;
    most = std::max(most,
                    1.0 - static_cast<double>(units(name) - wanted) / static_cast<double>(offered));
  }
  return most;
}

double Resources::distance_to(const Resources& demand) const {
  double distance = 0;
  for (const auto& [name, wanted] : demand.units_) {
    const std::int64_t has = units(name);
    if (has < wanted) distance += static_cast<double>(wanted - has) / static_cast<double>(wanted);
  }
  return distance;
}

std::string Resources::missing(const Resources& demand, const Resources& total) const {
  std::string text;
  for (const auto& [name, wanted] : demand.units_) {
    const std::int64_t has = units(name), all = total.units(name);
    if (has >= wanted) continue;
    if (!text.empty()) text += ", ";
    text += name + " " + amount_text(name, wanted, Rounding::kUp) + " (has " +
            amount_text(name, has, Rounding::kDown) +
            (has == all ? ")" : " free of " + amount_text(name, all, Rounding::kDown) + ")");
  }
  return text;
}

std::string Resources::missing(const Resources& demand) const {
  std::string text;
  for (const auto& [name, wanted] : demand.units_) {
    if (units(name) >= wanted) continue;
    if (!text.empty()) text += ", ";
    text += name + " " + amount_text(name, wanted, Rounding::kUp) + " (has " +
            amount_text(name, units(name), Rounding::kDown) + ")";
  }
  return text;
}

std::string Resources::to_string() const {
  if (units_.empty()) return "nothing";
  std::string text;
  for (const auto& [name, units] : units_) {
    if (!text.empty()) text += ", ";
    text += name + " " + amount_text(name, units, Rounding::kUp);
  }
  return text;
}

}  // namespace placement
