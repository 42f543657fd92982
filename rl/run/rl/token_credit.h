// TokenCredit: an advantage of each token, worked out where the tokens are. It comes from a critic
// (PPO), or from the rewards and the policy's probabilities (REINFORCE++, ReMax, token baselines).
#pragma once

#include "rl/run/rl/credit_assigner.h"

namespace rl {

struct TokenCreditOptions {
  bool has_critic = false;  // on the policy or by itself: its time is of the values
  bool whitens = false;     // over the tokens of all workers
};

class TokenCredit : public CreditAssigner {
 public:
  TokenCredit(const TokenCreditOptions& options, EstimateCalls& calls)
      : options_(options), calls_(calls) {}

  runtime::Status assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                         StepTimer& timer) override;

 private:
  TokenCreditOptions options_;
  EstimateCalls& calls_;
};

}  // namespace rl
