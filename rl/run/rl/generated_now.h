// GeneratedNow: samples by the weights of now.
#pragma once

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"

namespace rl {

class GeneratedNow : public SampleGenerator {
 public:
  GeneratedNow(PromptSource& prompts, GenerateCalls& policy) : prompts_(prompts), policy_(policy) {}

  runtime::Result<GeneratedSamples> generate(const SampleRequest& request,
                                             StepTimer& timer) override;
  nlohmann::json position() const override { return prompts_.position(); }

 private:
  PromptSource& prompts_;
  GenerateCalls& policy_;
};

}  // namespace rl
