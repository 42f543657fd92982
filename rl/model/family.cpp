#include "rl/model/family.h"

#include <array>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::array kFamilies = {&kLlamaFamily};

}  // namespace

const Family* find_family(std::string_view model_type) {
  for (const Family* family : kFamilies) {
    if (family->model_type == model_type) return family;
  }
  return nullptr;
}

const Family* find_gguf_family(std::string_view architecture) {
  for (const Family* family : kFamilies) {
    if (family->gguf_architecture == architecture) return family;
  }
  return nullptr;
}

const Family& family_of(const ModelConfig& config) {
  const Family* family = find_family(config.family);
  CHECK(family != nullptr);
  return *family;
}

std::string supported_families() {
  std::string names;
  for (const Family* family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family->model_type);
  return names;
}

}  // namespace rl
