// DrawnNow: samples by the weights of now.
#pragma once

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"

namespace rl {

class DrawnNow : public SampleDrawer {
 public:
  DrawnNow(PromptSource& prompts, GenerateCalls& policy) : prompts_(prompts), policy_(policy) {}

  runtime::Result<Drawn> draw(const SampleRequest& request, StepTimer& timer) override;
  nlohmann::json position() const override { return prompts_.position(); }

 private:
  PromptSource& prompts_;
  GenerateCalls& policy_;
};

}  // namespace rl
