// The keys of the stages around `starling train`: `starling sft` and its like, with the names of
// verl's SFT trainer.
#pragma once

#include <string_view>

#include "rl/config/key_table.h"

namespace rl {

/// The keys of `starling sft`.
const KeyTable& sft_keys();

/// The keys of the stages that learn from preferences.
const KeyTable& dpo_keys();
const KeyTable& kto_keys();
const KeyTable& rm_keys();

/// Of the stage of that name; nullptr: there is none.
const KeyTable* find_stage_keys(std::string_view command);

}  // namespace rl
