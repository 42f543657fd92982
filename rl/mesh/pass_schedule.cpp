#include "rl/mesh/pass_schedule.h"

#include <algorithm>

namespace rl {
namespace {

struct Group {
  std::size_t first = 0, last = 0;

  std::size_t size() const { return last - first; }
};

// A smaller group would end the stages' turns early, so that the last one takes what remains.
std::vector<Group> groups_of(std::size_t passes, std::size_t stages) {
  std::vector<Group> groups;
  for (std::size_t first = 0; first < passes;) {
    const std::size_t rest = passes - first;
    groups.push_back({first, rest < 2 * stages ? passes : first + stages});
    first = groups.back().last;
  }
  return groups;
}

// Forward passes that a stage makes before the first backward pass. That is what it takes until the
// last chunk has made the first group's first pass and the gradient has come back here. With
// several chunks twice as many as there are stages behind, so that neither direction waits for the
// other.
std::size_t steps_ahead(int stage, int stages, int chunks, std::size_t group) {
  const auto behind = static_cast<std::size_t>(stages - 1 - stage);
  return chunks == 1 ? behind : 2 * behind + static_cast<std::size_t>(chunks - 1) * group;
}

}  // namespace

std::vector<PassStep> pass_schedule(int stage, int stages, int chunks, std::size_t passes) {
  std::vector<PassStep> forward, backward;
  std::size_t largest = static_cast<std::size_t>(stages);
  for (const Group& group : groups_of(passes, static_cast<std::size_t>(stages))) {
    largest = std::max(largest, group.size());
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (std::size_t pass = group.first; pass < group.last; ++pass) {
        forward.push_back({pass, chunk, /*is_backward=*/false});
        backward.push_back({pass, chunks - 1 - chunk, /*is_backward=*/true});
      }
    }
  }
  const std::size_t ahead = std::min(steps_ahead(stage, stages, chunks, largest), forward.size());
  std::vector<PassStep> steps;
  for (std::size_t next = 0; next < forward.size() + ahead; ++next) {
    if (next < forward.size()) steps.push_back(forward[next]);
    if (next >= ahead) steps.push_back(backward[next - ahead]);
  }
  return steps;
}

std::vector<std::size_t> passes_not_through(int stages, int chunks, std::size_t passes) {
  std::vector<std::size_t> waiting;
  std::size_t through = 0;
  for (const PassStep& step : pass_schedule(/*stage=*/0, stages, chunks, passes)) {
    if (step.chunk != 0) continue;
    if (step.is_backward)
      ++through;
    else
      waiting.push_back(step.pass - through);
  }
  return waiting;
}

std::int64_t chunks_in_flight_max(int stage, int stages, int chunks) {
  const auto largest = static_cast<std::size_t>(2 * stages - 1);
  return static_cast<std::int64_t>(steps_ahead(stage, stages, chunks, largest)) + 1;
}

}  // namespace rl
