#include "rl/model/rope_on_device.h"

#include <ATen/ops/from_blob.h>

#include <mutex>
#include <vector>

namespace rl {

class RopeTables::OnDevices {
 public:
  std::vector<std::shared_ptr<const DeviceRopeTables>> copies;  // one a device
};

namespace {

std::mutex rope_copies_mutex;  // of all tables: taken once a pass

}  // namespace

std::shared_ptr<const DeviceRopeTables> device_tables(
    const std::shared_ptr<const RopeTables>& tables, const at::Device& device) {
  const std::lock_guard lock(rope_copies_mutex);
  if (!tables->on_devices) tables->on_devices = std::make_shared<RopeTables::OnDevices>();
  auto& copies = tables->on_devices->copies;
  for (const auto& copy : copies)
    if (copy->cos.device() == device) return copy;
  const auto copied = [&](const std::vector<float>& table) {
    return at::from_blob(const_cast<float*>(table.data()), {tables->positions, tables->half},
                         at::kFloat)
        .to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  };
  copies.push_back(std::make_shared<const DeviceRopeTables>(
      DeviceRopeTables{.cos = copied(tables->cos), .sin = copied(tables->sin)}));
  return copies.back();
}

}  // namespace rl
