#include "rl/template/budget.h"

#include <string>

#include "rl/template/failure.h"

namespace rl {

TemplateDepthGuard::TemplateDepthGuard(int& depth, int most) : depth_(depth) {
  if (depth_ >= most) fail_python("RecursionError", "maximum recursion depth exceeded");
  ++depth_;
}

void RenderBudget::charge(std::size_t bytes) {
  work_bytes_ += bytes;
  if (work_bytes_ > limits_.work_bytes_max)
    fail_limit("rendering needs more than " + std::to_string(limits_.work_bytes_max) +
               " bytes of memory");
}

void RenderBudget::charge_steps(std::int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps_max)
    fail_limit("rendering takes more than " + std::to_string(limits_.steps_max) + " steps");
}

void RenderBudget::check_output(std::size_t bytes) const {
  if (bytes > limits_.output_bytes_max)
    fail_limit("rendering gives more than " + std::to_string(limits_.output_bytes_max) + " bytes");
}

}  // namespace rl
