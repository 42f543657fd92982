// Actors as objects of the test's process. A group of one rank needs no other process, and a
// runtime that is not started keeps no objects.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/config/config.h"
#include "rl/worker/toy_model.h"
#include "runtime/runtime.h"
#include "tests/support/temporary_folder.h"

namespace rl {

class ActorTest : public ::testing::Test {
 protected:
  ActorTest() {
    EXPECT_TRUE(
        make_toy_model(model_.path(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16})
            .ok());
  }

  /// Of a group of one whose driver has set these keys.
  WorkerSpec spec(std::vector<std::string> overrides, const KeyTable& keys = train_keys()) const {
    auto config = Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    WorkerSpec spec;
    spec.config = config->serialize();
    spec.model = spec.model_name = model_.path().string();
    spec.group = "alone";
    return spec;
  }
  WorkerSpec spec_of_no_driver() const {
    WorkerSpec spec = this->spec({});
    spec.config = "[]";
    return spec;
  }

  const support::TemporaryFolder model_;
  char name_[5] = "test";
  char* arguments_[2] = {name_, nullptr};
  runtime::Runtime runtime_{1, arguments_};
};

}  // namespace rl
