// A GGUF file made of metadata and small tensors in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/weights/gguf.h"

namespace rl::testing {

class FakeGguf final : public GgufFile {
 public:
  void set_text(const std::string& key, const std::string& value) {
    set(key, {GgufType::kString, std::string_view(texts_.emplace_back(value))});
  }
  void set_texts(const std::string& key, const std::vector<std::string>& values) {
    std::string& kept = texts_.emplace_back();
    for (const std::string& value : values) {
      const std::uint64_t length = value.size();
      kept.append(reinterpret_cast<const char*>(&length), sizeof(length)) += value;
    }
    set(key, {GgufType::kArray,
              GgufArray(GgufType::kString, values.size(), std::as_bytes(std::span(kept)))});
  }
  void set_integer(const std::string& key, std::int64_t value) {
    set(key, {GgufType::kI64, value});
  }
  void set_number(const std::string& key, double value) { set(key, {GgufType::kF32, value}); }
  void set_bool(const std::string& key, bool value) { set(key, {GgufType::kBool, value}); }
  void set_bytes(const std::string& key, const std::string& bytes) {
    const std::string& kept = texts_.emplace_back(bytes);
    set(key,
        {GgufType::kArray, GgufArray(GgufType::kU8, kept.size(), std::as_bytes(std::span(kept)))});
  }
  void set_tensor(const std::string& name, std::vector<float> values) {
    infos_.push_back({name, {static_cast<std::int64_t>(values.size())}, DType::kF32});
    values_[name] = std::move(values);
  }

  const std::vector<GgufEntry>& entries() const override { return entries_; }
  const GgufValue* metadata(std::string_view key) const override {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const GgufEntry& entry) { return entry.key == key; });
    return found == entries_.end() ? nullptr : &found->value;
  }
  const std::string& name() const override { return name_; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  const TensorInfo* find(std::string_view name) const override {
    const auto found = std::find_if(infos_.begin(), infos_.end(),
                                    [&](const TensorInfo& info) { return info.name == name; });
    return found == infos_.end() ? nullptr : &*found;
  }
  runtime::Status read_f32(std::string_view name, std::span<float> out) const override {
    const auto found = values_.find(std::string(name));
    if (found == values_.end() || found->second.size() != out.size())
      return runtime::invalid_argument(name_ + ": no such tensor of that size");
    std::copy(found->second.begin(), found->second.end(), out.begin());
    return {};
  }

 private:
  void set(const std::string& key, GgufValue value) { entries_.push_back({key, value}); }

  const std::string name_ = "m.gguf";
  std::deque<std::string> texts_;  // their addresses stay
  std::vector<GgufEntry> entries_;
  std::vector<TensorInfo> infos_;
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace rl::testing
