// Batches that several tests of models compute.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/model/packed_batch.h"

namespace rl::testing {

inline PackedBatch two_sequences() {
  PackedBatch batch;
  batch.append(std::vector<std::int32_t>{3, 14, 15, 9, 26, 5});
  batch.append(std::vector<std::int32_t>{35, 8, 97});
  return batch;
}

}  // namespace rl::testing
