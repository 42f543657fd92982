// ATen's operators as spans of a profile.
#pragma once

namespace rl {

/// Makes every operator that ATen runs from now on, on any thread, a span of the active recording.
/// Kernels are recorded as kKernel, nodes of the backward pass as kOperation. Thread-safe; asking
/// twice changes nothing.
void record_aten_spans();

/// Ends that; operators then cost what they did before.
void forget_aten_spans();

}  // namespace rl
