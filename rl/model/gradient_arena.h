// Gradients in an arena that is not zeroed for each update. A sum begins by overwriting what was
// there, and only what no pass has written is zeroed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rl/model/parameters.h"

namespace rl {

/// The gradient of one parameter, or of some of its rows: a sum over passes. One thread at a time.
class GradientSum {
 public:
  GradientSum(at::Tensor gradient, std::shared_ptr<const bool> paused)
      : gradient_(std::move(gradient)), paused_(std::move(paused)) {}

  /// See GradientArena::pause().
  bool is_paused() const { return *paused_; }

  /// Before something is added to all of it. True: the sum begins, so that it must be written over
  /// what is there.
  bool begin();

  /// Before something is added to those rows, ascending. The others are zero then.
  void begin_rows(std::vector<std::int64_t> rows);

  /// A new sum, which nothing has been added to.
  void forget();

  /// Zeroes what is left of the sum before, unless this one has begun.
  void settle();

  /// All of it is zero, or has no memory.
  void drop();

 private:
  // What may hold something other than zero.
  struct Extent {
    bool whole = false;
    std::vector<std::int64_t> rows;  // else these
  };

  at::Tensor gradient_;
  const std::shared_ptr<const bool> paused_;
  bool begun_ = false;
  Extent written_;  // of this sum
  Extent left_;     // of the one before
};

/// Gradients with the layout of what is trained. A resource that keeps its place. One thread at a
/// time.
class GradientArena {
 public:
  explicit GradientArena(Parameters zeros) : parameters_(std::move(zeros)) {}
  GradientArena(const GradientArena&) = delete;
  GradientArena& operator=(const GradientArena&) = delete;

  /// The memory, whatever it holds, and views of it.
  const Parameters& memory() const { return parameters_; }

  /// The sum of a view of that memory. Views are equal or apart.
  std::shared_ptr<GradientSum> sum_of(const at::Tensor& view);

  /// What passes have added since forget(), zero elsewhere. To be read.
  const Parameters& settled();

  /// The same of some elements that hold whole parts, which are zero elsewhere then.
  void settle(const ArenaRange& range);
  /// Their memory is about to be given back.
  void drop(const ArenaRange& range);

  void forget();

  /// While it is, the linear layers of a backward pass add nothing.
  void pause(bool paused) { *paused_ = paused; }

  /// Something else has written to the memory, anywhere: the next sum begins with none of it.
  void overwritten();

  /// After the memory was taken again: zeroes all of it.
  void renew();

  /// Before the memory is given back: nothing is to be zeroed there.
  void drop();

 private:
  struct Part {
    std::int64_t end = 0;
    std::shared_ptr<GradientSum> sum;
  };

  Parameters parameters_;
  const std::shared_ptr<bool> paused_ = std::make_shared<bool>(false);
  std::map<std::int64_t, Part> parts_;  // by their first element
};

}  // namespace rl
