// The order in which a stage of a pipeline makes its forward and backward passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rl {

/// One pass through one of a stage's own chunks.
struct PassStep {
  std::size_t pass = 0;
  int chunk = 0;  // of the stage's own
  bool is_backward = false;

  bool operator==(const PassStep&) const = default;
};

/// Interleaved 1F1B (Narayanan et al. 2021, arXiv:2104.04473, section 2.2) of stages with as many
/// chunks each, over passes 0 to n - 1. A group of about as many passes as there are stages goes
/// through one chunk before it goes through the next. After some forward passes ahead of the others
/// a stage makes a forward and a backward pass in turn. With n passes of equal length, S stages and
/// C chunks the stages wait (S - 1) / (C n + S - 1) of the time. With one chunk that is 1F1B. Each
/// chunk makes its forward passes, and its backward passes, in the order of passes. No stage waits
/// for a step that waits for one of its own later ones, whatever the number of passes.
std::vector<PassStep> pass_schedule(int stage, int stages, int chunks, std::size_t passes);

/// Of the first stage: how many passes, at each forward pass through its first chunk, have not gone
/// back through that chunk.
std::vector<std::size_t> passes_not_through(int stages, int chunks, std::size_t passes);

/// The most chunks' passes that a stage has the activations of at a time, with any number of
/// passes.
std::int64_t chunks_in_flight_max(int stage, int stages, int chunks);

}  // namespace rl
