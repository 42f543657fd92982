#include "placement/resource/room.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace placement {

namespace {

constexpr std::int64_t kOne = Resources::kUnitsPerOne;
const std::string kGpu = "GPU";

std::int64_t gpu_units(const Resources& demand) { return demand.units(kGpu); }

}  // namespace

runtime::Status check_gpus(const Resources& demand) {
  const std::int64_t units = gpu_units(demand);
  if (units <= kOne || units % kOne == 0) return {};
  return runtime::invalid_argument("GPU " + std::to_string(static_cast<double>(units) / kOne) +
                                   ": expected a part of one, or a whole number of them");
}

Room::Room(const Resources& total) : left_(total) {
  std::uint32_t number = 0;
  for (std::int64_t units = gpu_units(total); units > 0; units -= kOne)
    gpus_.emplace_back(number++, std::min(units, kOne));
}

Room::Room(const Resources& total, const GpuList& gpus) : left_(total) {
  std::int64_t units = gpu_units(total);
  for (std::uint32_t number : gpus) {
    gpus_.emplace_back(number, std::min(units, kOne));
    units -= std::min(units, kOne);
  }
}

bool Room::has_gpus(const Resources& demand) const {
  const std::int64_t wanted = gpu_units(demand);
  if (wanted == 0) return true;
  if (wanted < kOne)
    return std::any_of(gpus_.begin(), gpus_.end(),
                       [&](const auto& gpu) { return gpu.second >= wanted; });
  return std::count_if(gpus_.begin(), gpus_.end(),
                       [](const auto& gpu) { return gpu.second == kOne; }) >= wanted / kOne;
}

std::int64_t* Room::gpu(std::uint32_t number) {
  auto found = std::find_if(gpus_.begin(), gpus_.end(),
                            [&](const auto& gpu) { return gpu.first == number; });
  return found == gpus_.end() ? nullptr : &found->second;
}

GpuList Room::take(const Resources& demand) {
  CHECK(covers(demand));
  GpuList taken;
  const std::int64_t wanted = gpu_units(demand);
  if (wanted > 0 && wanted < kOne) {
    std::pair<std::uint32_t, std::int64_t>* best = nullptr;
    for (auto& gpu : gpus_) {
      if (gpu.second >= wanted && (!best || gpu.second < best->second)) best = &gpu;
    }
    best->second -= wanted;
    taken.push_back(best->first);
  }
  for (auto& [number, units] : gpus_) {
    if (wanted < kOne || static_cast<std::int64_t>(taken.size()) == wanted / kOne) break;
    if (units < kOne) continue;
    units = 0;
    taken.push_back(number);
  }
  left_ -= demand;
  return taken;
}

bool Room::take(const Resources& demand, const GpuList& gpus) {
  const std::int64_t wanted = gpu_units(demand), each = std::min(wanted, kOne);
  if (!left_.covers(demand) || static_cast<std::int64_t>(gpus.size()) != (wanted + kOne - 1) / kOne)
    return false;
  for (std::uint32_t number : gpus) {
    const std::int64_t* units = gpu(number);
    if (!units || *units < each) return false;
  }
  for (std::uint32_t number : gpus) *gpu(number) -= each;
  left_ -= demand;
  return true;
}

void Room::give(const Resources& demand, const GpuList& gpus) {
  const std::int64_t each = std::min(gpu_units(demand), kOne);
  for (std::uint32_t number : gpus) {
    std::int64_t* units = gpu(number);
    CHECK(units != nullptr);
    *units += each;
  }
  left_ += demand;
}

std::string Room::missing(const Resources& demand, const Resources& total) const {
  std::string text = left_.missing(demand, total);
  if (text.empty() && !has_gpus(demand))
    text = "a GPU that is free as a whole (there are parts of several)";
  return text;
}

}  // namespace placement
