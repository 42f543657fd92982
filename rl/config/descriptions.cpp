#include "rl/config/descriptions.h"

#include <map>

namespace rl {
namespace {

struct Description {
  std::string_view key;
  std::string_view text;
};

constexpr Description kDescriptions[] = {
#include "rl/config/descriptions.inc"
};

}  // namespace

std::string_view description_of(std::string_view key) {
  static const std::map<std::string_view, std::string_view> texts = [] {
    std::map<std::string_view, std::string_view> made;
    for (const Description& description : kDescriptions) made.emplace(description.key, description.text);
    return made;
  }();
  const auto found = texts.find(key);
  return found == texts.end() ? std::string_view() : found->second;
}

}  // namespace rl
