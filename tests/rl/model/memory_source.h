// MemorySource: a WeightSource of tensors that are in no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/weights/weight_source.h"

namespace rl::testing {

/// Each element is its index, plus 1000 per tensor.
class MemorySource final : public WeightSource {
 public:
  void add(std::string name, std::vector<std::int64_t> shape) {
    infos_.push_back({std::move(name), std::move(shape), DType::kF32});
  }
  void remove(std::string_view name) {
    std::erase_if(infos_, [&](const TensorInfo& info) { return info.name == name; });
  }
  void rename(std::string_view from, std::string_view to) {
    for (TensorInfo& info : infos_) {
      if (info.name == from) info.name = to;
    }
  }
  // Gives it the numbers of another.
  void alias(const std::string& name, const std::string& of) { aliases_[name] = of; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  const TensorInfo* find(std::string_view name) const override {
    for (const TensorInfo& info : infos_) {
      if (info.name == name) return &info;
    }
    return nullptr;
  }
  runtime::Status read_f32(std::string_view name, std::span<float> out) const override {
    const auto alias = aliases_.find(std::string(name));
    const float base =
        1000.0F *
        static_cast<float>(find(alias == aliases_.end() ? name : std::string_view(alias->second)) -
                           infos_.data());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = base + static_cast<float>(i);
    return {};
  }

 private:
  std::vector<TensorInfo> infos_;
  std::map<std::string, std::string> aliases_;
};

}  // namespace rl::testing
