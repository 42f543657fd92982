#include "rl/model/tensor_mismatches.h"

#include <algorithm>
#include <utility>

namespace rl {
namespace {

constexpr std::size_t kNamedMax = 8;  // tensors of one kind in a message

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string listed(std::string text, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < std::min(names.size(), kNamedMax); ++i)
    text += (i == 0 ? " " : ", ") + names[i];
  if (names.size() > kNamedMax)
    text += " and " + std::to_string(names.size() - kNamedMax) + " more";
  return text;
}

}  // namespace

void TensorMismatches::add_misshaped(const std::string& name,
                                     const std::vector<std::int64_t>& found,
                                     const std::vector<std::int64_t>& expected) {
  misshaped.push_back(name + " " + shape_text(found) + " instead of " + shape_text(expected));
}

runtime::Status TensorMismatches::status(const std::string& what) const {
  std::string message;
  for (const auto& [kind, names] : {std::pair("missing", &missing),
                                    {"of the wrong shape", &misshaped},
                                    {"unexpected", &unexpected}}) {
    if (!names->empty()) message += (message.empty() ? "" : "; ") + listed(kind, *names);
  }
  return message.empty() ? runtime::Status() : runtime::invalid_argument(what + ": " + message);
}

}  // namespace rl
