// The families there are; each is defined in the file that has its name.
#pragma once

#include "rl/model/family.h"

namespace rl {

extern const Family kLlamaFamily;  // also SmolLM
extern const Family kMistralFamily;
extern const Family kMixtralFamily;
extern const Family kQwen2Family;  // also Qwen2.5
extern const Family kQwen3Family;
extern const Family kQwen3MoeFamily;
extern const Family kPhi3Family;
extern const Family kGemma2Family;
extern const Family kGlmFamily;
extern const Family kGlm4Family;
extern const Family kChatGlmFamily;  // ChatGLM2 and 3
extern const Family kDeepseekV3Family;
extern const Family kKimiK2Family;
extern const Family kGpt2Family;
extern const Family kOptFamily;

}  // namespace rl
