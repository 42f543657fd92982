// Models whose states are a file each.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "rl/run/rl/role_calls.h"
#include "runtime/core/result.h"

namespace rl {

/// Writes a file a model and notes all that it is asked for; fails where the test says so.
class FakeModels final : public StateCalls {
 public:
  bool has_critic() const override { return critic; }
  runtime::Result<Write> policy_state(bool async) const override { return state("policy", async); }
  runtime::Result<Write> critic_state(bool async) const override { return state("critic", async); }
  runtime::Status load_policy(const std::filesystem::path& folder) override {
    return done("policy from " + folder.filename().string());
  }
  runtime::Status load_critic(const std::filesystem::path& folder) override {
    return done("critic from " + folder.filename().string());
  }

  bool critic = true;
  std::map<std::string, runtime::Status> fails = {};  // by what is asked for
  mutable std::vector<std::string> log;

 private:
  runtime::Status done(const std::string& what) const {
    log.push_back(what);
    const auto failure = fails.find(what);
    return failure == fails.end() ? runtime::Status() : failure->second;
  }
  runtime::Result<Write> state(const std::string& model, bool async) const {
    const runtime::Status copied = done(model + (async ? " async" : " before"));
    if (!copied.ok()) return copied;
    return Write([this, model](const std::filesystem::path& folder) {
      log.push_back(model + " begun");
      return [this, model, folder]() -> Files {
        if (const runtime::Status written = done(model + " written"); !written.ok()) return written;
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "weights") << model;
        return std::vector<std::string>{"weights"};
      };
    });
  }
};

}  // namespace rl
