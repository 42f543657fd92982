// The C interface of libstarling_cuda.so: kernels over raw device pointers. It is without torch and
// without C++ types, so that one build of the library serves every LibTorch. Loaded at run time by
// rl/cuda/cuda_library.h; never linked. Each function enqueues on `stream` (a cudaStream_t) and
// returns 0 or a cudaError_t.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Grows with every change of a signature below; a loader refuses another number.
#define STARLING_CUDA_ABI 1

int starling_cuda_abi(void);

/// "out of memory" for a code that a function below returned.
const char* starling_cuda_error(int code);

/// One step of AdamW (Loshchilov & Hutter, arXiv:1711.05101) over `count` contiguous fp32 elements,
/// in place. gradient_scale multiplies the gradient first (clipping); correction1 = 1 - beta1^t,
/// correction2 = 1 - beta2^t.
struct starling_cuda_adamw_options {
  float learning_rate, beta1, beta2, epsilon, weight_decay, gradient_scale, correction1,
      correction2;
};
int starling_cuda_adamw(float* parameters, const float* gradients, float* first_moment,
                        float* second_moment, size_t count,
                        const struct starling_cuda_adamw_options* options, void* stream);

/// logprobs[r] = log softmax(logits[r, :] / temperature)[targets[r]] for row-major fp32 logits
/// [rows, vocabulary]. A target outside the vocabulary gives NaN in its row. The reduction order
/// depends on the row alone, never on `rows`.
int starling_cuda_target_logprobs(const float* logits, const int64_t* targets, float* logprobs,
                                  size_t rows, size_t vocabulary, float temperature, void* stream);

/// Sum of squares of `count` fp32 elements into *sum (device, fp64): a gradient's squared norm.
/// Same bits each time. `scratch` holds STARLING_CUDA_NORM_BLOCKS doubles.
#define STARLING_CUDA_NORM_BLOCKS 1024
int starling_cuda_squared_norm(const float* values, size_t count, double* scratch, double* sum,
                               void* stream);

#ifdef __cplusplus
}
#endif
