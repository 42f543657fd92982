// The arithmetic of training and the peak of the device: together the model FLOPs utilisation,
// perf/mfu/....
#pragma once

#include <cstdint>
#include <span>

#include <c10/core/Device.h>

#include "rl/model/model_config.h"

namespace rl {

/// Floating-point operations of one forward and backward pass over sequences of these lengths, as
/// the PaLM paper counts them (2204.02311, appendix B). Each token takes 6 for each weight of a
/// matrix (of experts those that it takes). Attention takes 12 * query_size * length² a layer. What
/// is computed twice counts once. As in verl, prompts that samples share count for each of them,
/// and frozen weights as if they were trained.
double training_flops(const ModelConfig& config, std::span<const std::int64_t> lengths);

/// Operations a second of a product of two square matrices on that device, with the threads of now,
/// in fp32 or bf16. The best of three. On two cores 20 ms. 0 on devices other than CPU and CUDA,
/// and where the device fails or has no room.
double measured_peak_flops(c10::Device device, bool bf16);

}  // namespace rl
