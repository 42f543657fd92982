#include "runtime/transport/keyring.h"

#include <algorithm>
#include <mutex>

namespace runtime {

struct Keyring::State {
  std::mutex mutex;
  Tokens tokens;
};

Keyring::Keyring(std::string token) : state_(std::make_shared<State>()) {
  state_->tokens.present = std::move(token);
}

std::string Keyring::present() const {
  std::lock_guard lock(state_->mutex);
  return state_->tokens.present;
}

std::vector<std::string> Keyring::accepted() const {
  Tokens held = tokens();
  std::vector<std::string> accepted;
  accepted.push_back(std::move(held.present));
  for (AlsoToken& also : held.also) accepted.push_back(std::move(also.token));
  return accepted;
}

Tokens Keyring::tokens() const {
  const Deadline now = steady_now();
  std::lock_guard lock(state_->mutex);
  std::erase_if(state_->tokens.also, [&](const AlsoToken& also) { return also.until <= now; });
  return state_->tokens;
}

void Keyring::change(Tokens tokens) {
  std::lock_guard lock(state_->mutex);
  state_->tokens = std::move(tokens);
}

void Keyring::expect(std::string token) {
  std::lock_guard lock(state_->mutex);
  state_->tokens.also.push_back({std::move(token), Deadline::max()});
}

}  // namespace runtime
