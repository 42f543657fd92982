// DataRanks: sums and gathers over data ranks, which the loss of one rank needs.
#pragma once

#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "runtime/core/result.h"

namespace rl {

/// The ranks that learn from different samples of one mini-batch. Every rank must make the same
/// calls in the same order with the same sizes. Errors: those of Communicator.
class DataRanks {
 public:
  virtual ~DataRanks() = default;

  virtual int size() const = 0;

  /// What a number that is the same on every rank counts on each, so that the sum is the number.
  double share() const { return 1.0 / size(); }

  /// Every rank ends with the element-by-element sum, and all of them with the same bits.
  virtual runtime::Status sum(std::span<double> values) = 0;

  /// The values of every rank, in rank order.
  virtual runtime::Result<std::vector<float>> gather(std::span<const float> values) = 0;
};

/// The ranks of a communicator, which it borrows.
class CommunicatorRanks : public DataRanks {
 public:
  explicit CommunicatorRanks(Communicator& communicator) : communicator_(communicator) {}

  int size() const override { return communicator_.size(); }
  runtime::Status sum(std::span<double> values) override;
  runtime::Result<std::vector<float>> gather(std::span<const float> values) override;

 private:
  Communicator& communicator_;
};

}  // namespace rl
