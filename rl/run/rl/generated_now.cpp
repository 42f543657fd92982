#include "rl/run/rl/generated_now.h"

#include <utility>

namespace rl {

runtime::Result<GeneratedSamples> GeneratedNow::generate(const SampleRequest& request,
                                                         StepTimer& timer) {
  runtime::Result<StepPrompts> prompts = prompts_.next(request.step, request.round);
  if (!prompts.ok()) return prompts.status();
  auto generated = policy_.generate(*prompts, /*validation=*/false);
  if (!generated.ok()) return generated.status();
  return GeneratedSamples{.prompts = std::move(*prompts), .generated = std::move(*generated)};
}

}  // namespace rl
