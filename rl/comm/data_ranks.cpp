#include "rl/comm/data_ranks.h"

#include <algorithm>
#include <cstddef>

namespace rl {

using runtime::Result;
using runtime::Status;

Status CommunicatorRanks::sum(std::span<double> values) {
  return communicator_.all_reduce_sum(values);
}

Result<std::vector<float>> CommunicatorRanks::gather(std::span<const float> values) {
  // Each rank's values in its place, zeros in the others', summed.
  std::vector<float> all(values.size() * static_cast<std::size_t>(communicator_.size()), 0.0F);
  std::copy(values.begin(), values.end(),
            all.begin() + static_cast<std::ptrdiff_t>(values.size()) * communicator_.rank());
  if (const Status reduced = communicator_.all_reduce_sum(all); !reduced.ok()) return reduced;
  return all;
}

}  // namespace rl
