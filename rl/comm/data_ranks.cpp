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
  std::vector<float> all(values.size() * static_cast<std::size_t>(communicator_.size()));
  std::vector<std::span<std::byte>> others;
  for (int rank = 0; rank < communicator_.size(); ++rank)
    others.push_back(std::as_writable_bytes(
        std::span(all).subspan(values.size() * static_cast<std::size_t>(rank), values.size())));
  std::ranges::copy(std::as_bytes(values),
                    others[static_cast<std::size_t>(communicator_.rank())].begin());
  if (const Status gathered = communicator_.all_gather(std::as_bytes(values), others, "values");
      !gathered.ok())
    return gathered;
  return all;
}

}  // namespace rl
