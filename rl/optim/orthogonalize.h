// The orthogonalization of Muon's matrices. Plain pointers, no torch. Invariant: results depend on
// the matrix alone, not on the number of threads nor on the processor.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "rl/kernel/thread_pool.h"

namespace rl {

/// The nearest orthogonal matrix, about: singular values come out between 0.7 and 1.2. `matrix` is
/// row-major and replaced. Five coefficients' quintic Newton-Schulz iteration in fp32; Jordan 2024,
/// https://kellerjordan.github.io/posts/muon. `on_progress` is called after each product. Cost: 3
/// products an iteration, of which two give symmetric matrices and are computed by half.
void orthogonalize(kernel::ThreadPool& pool, std::span<float> matrix, std::int64_t rows,
                   std::int64_t columns, int iterations,
                   const std::function<void()>& on_progress = {});

/// The elements that it needs next to the matrix.
std::int64_t orthogonalize_elements(std::int64_t rows, std::int64_t columns);

}  // namespace rl
