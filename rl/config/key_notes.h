// Notes that many keys share, for the tables of keys.
#pragma once

#include <string_view>

namespace rl::key_notes {

inline constexpr std::string_view kLayout =
    "how weights and sequences are laid out over devices: every worker here holds the whole model";
inline constexpr std::string_view kMemory = "a memory setting: the result does not depend on it";
inline constexpr std::string_view kSpeed = "a speed setting: the result does not depend on it";
inline constexpr std::string_view kEngine = "an option of another inference engine";
inline constexpr std::string_view kProfiler =
    "of other profilers: global_profiler.steps writes a Chrome trace of all roles and ranks";
inline constexpr std::string_view kRolloutLogs =
    "of another inference engine's logs: what a rollout did is in the run's metrics and profiles";
inline constexpr std::string_view kFp32 =
    "weights, sums, optimizer and rollouts are fp32; fsdp_config.dtype=bfloat16 multiplies in bf16";
inline constexpr std::string_view kNoCode = "no code that comes with a model is ever run";
inline constexpr std::string_view kRouterLosses =
    "a mixture of experts learns by the policy's loss alone: losses that balance its router are "
    "not built. Set it to 0, and moe_router_load_balancing_type to none";
inline constexpr std::string_view kRouterBias =
    "the biases that balance a router's choices are there where the model has them, and stay as "
    "they are";
inline constexpr std::string_view kQuantised = "quantised training and rollout are not built yet";
inline constexpr std::string_view kPython =
    "Python code runs as a reward (reward.custom_reward_function.path), a data set "
    "(data.custom_cls.path) or a tool (multi_turn.tool_config_path)";
inline constexpr std::string_view kAgentLoops =
    "custom servers and managers are parts of verl; custom loops are supported as classes, "
    "by agent.agent_loop_config_path";
inline constexpr std::string_view kRouting =
    "the engine and the trainer compute the same bits, so that they choose the same experts";
inline constexpr std::string_view kSameLogprobs =
    "the engine and the trainer compute the same bits: every weight is 1, and no sample is "
    "rejected. For samples of older weights, the ratio in the loss is to those weights";
inline constexpr std::string_view kRewardModelPlace =
    "the reward model runs with the reward workers, on the policy's slots";
inline constexpr std::string_view kAsynchronous =
    "concurrent generation is enabled by actor_rollout_ref.hybrid_engine=false here, or by "
    "trainer.v1.trainer_mode=separate_async or colocate_async; docs/guide/train.md says how they "
    "differ";
inline constexpr std::string_view kTeacherPlace =
    "the teacher shares the slots of the policy and has as many workers";
inline constexpr std::string_view kTopkLoss =
    "only used by losses over a teacher's most likely tokens: loss_mode=forward_kl_topk";
inline constexpr std::string_view kOwnProcesses = "of verl's own processes";
}  // namespace rl::key_notes
