#include "rl/algo/token_advantage.h"

#include <ATen/TensorOperators.h>

#include "runtime/core/check.h"

namespace rl {

at::Tensor per_token(const at::Tensor& advantages_B, const at::Tensor& mask_BT) {
  CHECK(advantages_B.size(0) == mask_BT.size(0));
  return advantages_B.unsqueeze(1) * mask_BT;
}

}  // namespace rl
