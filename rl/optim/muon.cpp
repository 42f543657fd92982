#include "rl/optim/muon.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "rl/optim/each_element.h"
#include "rl/optim/orthogonalize.h"

namespace rl {

using runtime::Status;

namespace {

// How much longer than the orthogonal matrix a step of the learning rate is.
double scale_of(const ArenaMatrix& matrix, bool match_adamw) {
  const auto rows = static_cast<double>(matrix.rows);
  const auto columns = static_cast<double>(matrix.columns);
  return match_adamw ? 0.2 * std::sqrt(std::max(rows, columns))
                     : std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

// One step's work on places of the home.
class Muon::Step {
 public:
  Step(kernel::ThreadPool& pool, const MuonOptions& options, std::span<float> parameters,
       std::span<const float> gradients, std::span<float> momentum, float learning_rate,
       float gradient_scale)
      : pool_(pool),
        options_(options),
        parameters_(parameters),
        gradients_(gradients),
        momentum_(momentum),
        learning_rate_(learning_rate),
        gradient_scale_(gradient_scale) {}

  // The direction that is to be made orthogonal; once for each place.
  void average(const ArenaRange& place, std::span<float> into) const {
    const std::span<float> momentum = part_of(momentum_, place);
    const std::span<const float> gradients = part_of(gradients_, place);
    for_each_element(pool_, place.size(), [&](std::size_t i) {
      const float gradient = gradients[i] * gradient_scale_;
      momentum[i] += (1.0F - options_.momentum) * (gradient - momentum[i]);
      into[i] =
          options_.nesterov ? gradient + options_.momentum * (momentum[i] - gradient) : momentum[i];
    });
  }

  void apply(const ArenaMatrix& matrix, const ArenaRange& place,
             std::span<const float> update) const {
    const std::span<float> parameters = part_of(parameters_, place);
    const auto size = static_cast<float>(learning_rate_ * scale_of(matrix, options_.match_adamw));
    const float keep = 1.0F - learning_rate_ * options_.weight_decay;
    for_each_element(pool_, place.size(), [&](std::size_t i) {
      parameters[i] = parameters[i] * keep - size * update[i];
    });
  }

 private:
  kernel::ThreadPool& pool_;
  const MuonOptions& options_;
  std::span<float> parameters_;
  std::span<const float> gradients_;
  std::span<float> momentum_;
  const float learning_rate_;
  const float gradient_scale_;
};

Muon::Muon(MatrixExchange exchange, const std::vector<ArenaRange>& decayed,
           const MuonOptions& options, const AdamWOptions& adamw)
    : exchange_(std::move(exchange)),
      options_(options),
      rest_(exchange_.home_elements(), decayed, adamw, exchange_.matrices_at_home()) {}

void Muon::set_steps(std::int64_t steps) {
  steps_ = steps;
  rest_.set_steps(steps);
}

Status Muon::step(kernel::ThreadPool& pool, std::span<float> parameters,
                  std::span<const float> gradients, float learning_rate, float gradient_scale) {
  const Status stepped = rest_.step(pool, parameters, gradients, learning_rate, gradient_scale);
  if (!stepped.ok()) return stepped;
  ++steps_;
  const Step step(pool, options_, parameters, gradients, rest_.first_moment(), learning_rate,
                  gradient_scale);
  std::vector<float> whole;
  for (int turn = 0; turn < exchange_.turns(); ++turn) {
    const ArenaMatrix* const mine = exchange_.mine(turn);
    whole.resize(mine == nullptr ? 0 : static_cast<std::size_t>(mine->elements()));
    const Status collected = exchange_.collect(
        turn,
        [&](const ArenaMatrix&, const ArenaRange& place, std::span<float> into) {
          step.average(place, into);
        },
        whole);
    if (!collected.ok()) return collected;
    if (mine != nullptr) {
      orthogonalize(pool, whole, mine->rows, mine->columns, options_.iterations,
                    [&] { exchange_.progress(); });
    }
    const Status distributed = exchange_.distribute(
        turn, whole,
        [&](const ArenaMatrix& matrix, const ArenaRange& place, std::span<const float> update) {
          step.apply(matrix, place, update);
        });
    if (!distributed.ok()) return distributed;
  }
  return {};
}

}  // namespace rl
