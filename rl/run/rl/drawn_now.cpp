#include "rl/run/rl/drawn_now.h"

#include <utility>

namespace rl {

runtime::Result<Drawn> DrawnNow::draw(const SampleRequest& request, StepTimer& timer) {
  runtime::Result<StepPrompts> prompts = prompts_.next(request.step, request.round);
  if (!prompts.ok()) return prompts.status();
  auto generated = policy_.generate(*prompts, /*validation=*/false);
  if (!generated.ok()) return generated.status();
  return Drawn{.prompts = std::move(*prompts), .generated = std::move(*generated)};
}

}  // namespace rl
