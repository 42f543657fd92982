// Resources: amounts that can be added up exactly.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "runtime/control/membership.h"
#include "runtime/control/resource_units.h"
#include "runtime/core/result.h"

namespace placement {

/// Amounts by name in units of 1/10000 (runtime/control/resource_units.h).
/// An absent name is zero; amounts never fall below zero. A value.
class Resources {
 public:
  static constexpr std::int64_t kUnitsPerOne = runtime::kResourceUnitsPerOne;

  Resources() = default;
  /// Errors: those of runtime::check_amount; kInvalidArgument: an empty name.
  static runtime::Result<Resources> from_map(const runtime::ResourceMap& amounts);
  runtime::ResourceMap to_map() const;

  bool empty() const { return units_.empty(); }
  std::int64_t units(const std::string& name) const;

  /// Whether `demand` can be taken out of this.
  bool covers(const Resources& demand) const;
  Resources& operator+=(const Resources& other);
  /// CHECKs that this covers `other`.
  Resources& operator-=(const Resources& other);
  bool operator==(const Resources&) const = default;
  auto operator<=>(const Resources&) const = default;

  /// How many times `demand` can be taken out of this; without end if it asks for nothing.
  std::size_t times(const Resources& demand) const;
  /// A multiple of this; the amounts must stay in range.
  Resources multiplied(std::size_t factor) const;
  /// How many resources other than CPU and memory this has which `demand` does not ask for.
  std::size_t unneeded_special(const Resources& demand) const;

  /// The share of `total` that is in use where this is free, from 0 to 1. It is the largest
  /// over the resources that `demand` names, or over all if it names none.
  double utilisation_of(const Resources& total, const Resources& demand) const;

  /// The same for what would be left if `demand`, which this covers, were taken out.
  double utilisation_with(const Resources& total, const Resources& demand) const;
  /// How far `demand` is from being covered: the missing shares of each resource that it names,
  /// added up; 0 if it is covered.
  double distance_to(const Resources& demand) const;

  /// What `demand` lacks here: "GPU 1 (has 0), CPU 4 (has 2.5)"; empty if it is covered.
  std::string missing(const Resources& demand) const;
  /// The same with what there is of it in all: "GPU 2 (has 1 free of 4), CPU 4 (has 2)".
  std::string missing(const Resources& demand, const Resources& total) const;
  /// "CPU 2, memory 1.07 GB"; "nothing" when empty.
  std::string to_string() const;

 private:
  std::map<std::string, std::int64_t> units_;  // no zeros
};

}  // namespace placement
