// LayerPulse: a model's passes as signs of progress of the rank that makes them.
#pragma once

#include <cstdint>
#include <string>

#include "rl/comm/communicator.h"
#include "rl/model/layer_listener.h"

namespace rl {

/// Borrows the communicator.
class LayerPulse final : public LayerListener {
 public:
  explicit LayerPulse(Communicator& communicator) : communicator_(communicator) {}

  void before_forward(std::int64_t layer) override {
    communicator_.progress(layer < 0 ? "the embeddings" : name_of(layer));
  }
  void before_backward(std::int64_t layer) override {
    communicator_.progress("backward of " + name_of(layer));
  }

 private:
  static std::string name_of(std::int64_t layer) { return "layer " + std::to_string(layer); }

  Communicator& communicator_;
};

}  // namespace rl
