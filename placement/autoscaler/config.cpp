#include "placement/autoscaler/config.h"

#include <algorithm>

namespace placement {

std::string_view to_string(Capacity capacity) {
  return capacity == Capacity::kSpot ? "spot" : "on-demand";
}

runtime::Labels NodeType::labels_of(const std::string& id, Capacity capacity) const {
  runtime::Labels all = labels;
  all[std::string(kAutoscalerIdLabel)] = id;
  all[std::string(kNodeTypeLabel)] = name;
  all[std::string(kCapacityLabel)] = to_string(capacity);
  return all;
}

const NodeType* AutoscalerConfig::type(std::string_view name) const {
  auto found = std::find_if(types.begin(), types.end(),
                            [&](const NodeType& type) { return type.name == name; });
  return found == types.end() ? nullptr : &*found;
}

}  // namespace placement
