#include "rl/config/stage_keys.h"

#include <span>

#include "rl/config/key_notes.h"

namespace rl {
namespace {

using enum KeyKind;
using enum KeySupport;
using namespace key_notes;

constexpr UsedKey kShared[] = {
#include "rl/config/stage_keys.inc"
};

constexpr UnusedKey kSharedUnused[] = {
#include "rl/config/unused_stage_keys.inc"
};

constexpr UsedKey kSftKeys[] = {
#include "rl/config/sft_keys.inc"
};

constexpr UsedKey kPreference[] = {
#include "rl/config/preference_keys.inc"
};

constexpr UsedKey kDpo[] = {
#include "rl/config/dpo_keys.inc"
};

constexpr UsedKey kKto[] = {
#include "rl/config/kto_keys.inc"
};

constexpr UsedKey kRm[] = {
#include "rl/config/rm_keys.inc"
};

// Sections end in '.'; the longest match wins.
constexpr KeyAlias kStageAliases[] = {
    // Those of starling sft alone come first.
    {"distillation.distillation_loss.topk", "distillation.topk"},
    {"data.multiturn.messages_key", "data.messages_key"},
    {"data.multiturn.tools_key", "data.tools_key"},
    {"data.multiturn.enable_thinking_key", "data.enable_thinking_key"},
    {"model.partial_pretrain", "model.path"},
    {"model.lora.alpha", "model.lora_alpha"},
    {"model.lora.dropout", "model.lora_dropout"},
    {"model.lora.rank", "model.lora_rank"},
    {"optim.warmup_style", "optim.lr_scheduler_type"},
    {"optim.lr_scheduler", "optim.lr_scheduler_type"},
    {"optim.warmup_steps_ratio", "optim.lr_warmup_steps_ratio"},
    {"data.chat_template", "model.custom_chat_template"},
    {"profile.steps", "global_profiler.steps"},
    {"trainer.max_steps", "trainer.total_training_steps"},
    {"trainer.max_actor_ckpt_to_keep", "trainer.max_ckpt_to_keep"},
    {"num_train_epochs", "trainer.total_epochs"},
};

constexpr std::span<const KeyAlias> kSharedAliases = std::span(kStageAliases).subspan(4);

}  // namespace

const KeyTable& sft_keys() {
  static const KeyTable table("sft", {{kShared, kSharedUnused}, {kSftKeys}}, kStageAliases);
  return table;
}

const KeyTable& dpo_keys() {
  static const KeyTable table("dpo", {{kShared, kSharedUnused}, {kPreference}, {kDpo}},
                              kSharedAliases);
  return table;
}

const KeyTable& kto_keys() {
  static const KeyTable table("kto", {{kShared, kSharedUnused}, {kPreference}, {kKto}},
                              kSharedAliases);
  return table;
}

const KeyTable& rm_keys() {
  static const KeyTable table("rm", {{kShared, kSharedUnused}, {kPreference}, {kRm}},
                              kSharedAliases);
  return table;
}

const KeyTable* find_stage_keys(std::string_view command) {
  for (const KeyTable* table : {&sft_keys(), &dpo_keys(), &kto_keys(), &rm_keys()}) {
    if (table->command() == command) return table;
  }
  return nullptr;
}

}  // namespace rl
