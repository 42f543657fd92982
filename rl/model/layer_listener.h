// LayerListener: hears how a pass gets on through a model's layers.
#pragma once

#include <cstdint>

namespace rl {

/// Layers count from 0; -1 is what comes before them, and the number of layers what comes behind.
/// Called by the thread that makes the pass, or that goes back through it.
class LayerListener {
 public:
  virtual ~LayerListener() = default;

  /// A pass is about to begin. `another_follows`: the next one does at once, with the same weights.
  virtual void before_pass(bool /*another_follows*/) {}
  /// The pass is about to read the layer's weights.
  virtual void before_forward(std::int64_t /*layer*/) {}
  /// The gradients of all later layers are there, and none of this layer.
  virtual void before_backward(std::int64_t /*layer*/) {}
  /// The pass has ended, and its backward pass, if it has one. Told by the maker of the pass; see
  /// Transformer::end_pass().
  virtual void after_pass() {}
};

}  // namespace rl
