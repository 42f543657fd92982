#include <cuda_runtime.h>

#include <cmath>

#include "rl/cuda/starling_cuda.h"

namespace {

constexpr int kThreads = 256;

__global__ void adamw_kernel(float* parameters, const float* gradients, float* first, float* second,
                             size_t count, starling_cuda_adamw_options o) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const float gradient = gradients[i] * o.gradient_scale;
    const float m = o.beta1 * first[i] + (1.0f - o.beta1) * gradient;
    const float v = o.beta2 * second[i] + (1.0f - o.beta2) * gradient * gradient;
    first[i] = m;
    second[i] = v;
    const float decayed = parameters[i] * (1.0f - o.learning_rate * o.weight_decay);
    parameters[i] =
        decayed - o.learning_rate * (m / o.correction1) / (sqrtf(v / o.correction2) + o.epsilon);
  }
}

/// Reduces over the block in a fixed tree; every thread returns the result.
template <class T, class Combine>
__device__ T block_reduce(T value, T* shared, Combine combine) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();
  return result;
}

/// One block a row, so that a row's result does not depend on its neighbours.
__global__ void target_logprobs_kernel(const float* logits, const int64_t* targets, float* logprobs,
                                       size_t vocabulary, float temperature) {
  __shared__ float shared[kThreads];
  const float* row = logits + static_cast<size_t>(blockIdx.x) * vocabulary;
  const float scale = 1.0f / temperature;
  float largest = -INFINITY;
  for (size_t i = threadIdx.x; i < vocabulary; i += kThreads)
    largest = fmaxf(largest, row[i] * scale);
  largest = block_reduce(largest, shared, [](float a, float b) { return fmaxf(a, b); });
  float total = 0.0f;
  for (size_t i = threadIdx.x; i < vocabulary; i += kThreads)
    total += expf(row[i] * scale - largest);
  total = block_reduce(total, shared, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) {
    const int64_t target = targets[blockIdx.x];
    const bool known = target >= 0 && static_cast<size_t>(target) < vocabulary;
    logprobs[blockIdx.x] = known ? row[target] * scale - largest - logf(total) : NAN;
  }
}

__global__ void squared_norm_blocks(const float* values, size_t count, double* scratch) {
  __shared__ double shared[kThreads];
  double total = 0.0;
  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    total += static_cast<double>(values[i]) * values[i];
  }
  total = block_reduce(total, shared, [](double a, double b) { return a + b; });
  if (threadIdx.x == 0) scratch[blockIdx.x] = total;
}

__global__ void squared_norm_total(const double* scratch, double* sum) {
  __shared__ double shared[kThreads];
  double total = 0.0;
  for (int i = threadIdx.x; i < STARLING_CUDA_NORM_BLOCKS; i += kThreads) total += scratch[i];
  total = block_reduce(total, shared, [](double a, double b) { return a + b; });
  if (threadIdx.x == 0) *sum = total;
}

}  // namespace

extern "C" {

int starling_cuda_abi(void) { return STARLING_CUDA_ABI; }

const char* starling_cuda_error(int code) {
  return cudaGetErrorString(static_cast<cudaError_t>(code));
}

int starling_cuda_adamw(float* parameters, const float* gradients, float* first_moment,
                        float* second_moment, size_t count,
                        const starling_cuda_adamw_options* options, void* stream) {
  if (count == 0) return cudaSuccess;
  const size_t blocks = (count + kThreads - 1) / kThreads;
  const unsigned grid = blocks < 65536 ? static_cast<unsigned>(blocks) : 65536u;
  adamw_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      parameters, gradients, first_moment, second_moment, count, *options);
  return cudaGetLastError();
}

int starling_cuda_target_logprobs(const float* logits, const int64_t* targets, float* logprobs,
                                  size_t rows, size_t vocabulary, float temperature, void* stream) {
  if (rows == 0) return cudaSuccess;
  if (rows > 0x7fffffff || vocabulary == 0 || !(temperature > 0.0f)) return cudaErrorInvalidValue;
  target_logprobs_kernel<<<static_cast<unsigned>(rows), kThreads, 0,
                           static_cast<cudaStream_t>(stream)>>>(logits, targets, logprobs,
                                                                vocabulary, temperature);
  return cudaGetLastError();
}

int starling_cuda_squared_norm(const float* values, size_t count, double* scratch, double* sum,
                               void* stream) {
  squared_norm_blocks<<<STARLING_CUDA_NORM_BLOCKS, kThreads, 0,
                        static_cast<cudaStream_t>(stream)>>>(values, count, scratch);
  squared_norm_total<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(scratch, sum);
  return cudaGetLastError();
}

}  // extern "C"
