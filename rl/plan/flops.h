// The arithmetic of training and the peak of the device: together the model FLOPs utilisation,
// perf/mfu/....
#pragma once

#include <cstdint>
#include <span>

#include <c10/core/Device.h>

#include "rl/model/model_config.h"

namespace rl {

/// Floating-point operations of one forward and backward pass over sequences of these lengths, as
/// the PaLM paper counts them (2204.02311, appendix B): 6 for each weight of a matrix and token (of
/// experts those that a token takes), 12 * query_size * length² a layer for attention. What is
/// computed twice counts once; prompts that samples share count for each of them, and frozen
/// weights as if they were trained, as in verl.
double training_flops(const ModelConfig& config, std::span<const std::int64_t> lengths);

/// What a product of two square matrices reaches on that device with the threads of now, operations
/// a second, in fp32 or bf16: the best of three. On two cores 20 ms. 0 on devices other than CPU
/// and CUDA, and where the device fails or has no room.
double measured_peak_flops(c10::Device device, bool bf16);

}  // namespace rl
