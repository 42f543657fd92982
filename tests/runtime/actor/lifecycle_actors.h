// Actors for the tests of how actors begin, end and come back.
#pragma once

#include <unistd.h>
#include <fstream>
#include <string>

#include "runtime/runtime.h"
#include "tests/support/gate.h"

namespace runtime::test {

/// Writes down what happens to it, since it cannot tell afterwards.
class Phoenix {
 public:
  explicit Phoenix(std::string diary) : diary_(std::move(diary)) { note("made"); }
  ~Phoenix() { note("destroyed"); }
  int pid() const { return ::getpid(); }
  int add(int n) { return total_ += n; }
  /// Dies in its first life, answers in the second.
  int die_once(const std::string& marker) {
    if (std::ifstream(marker).good()) return ++survived_;
    std::ofstream(marker) << "died";
    ::kill(::getpid(), SIGKILL);
    return -1;
  }
  /// At a gate of a test: what it does there comes before the note.
  void note_behind(const std::string& gate, const std::string& text) {
    if (support::Gate(gate).pass()) note(text);
  }

 private:
  void note(const std::string& text) { std::ofstream(diary_, std::ios::app) << text << "\n"; }
  std::string diary_;
  int total_ = 0;
  int survived_ = 0;
};

/// Has its own children.
class Parent {
 public:
  explicit Parent(Runtime& runtime) : runtime_(runtime) {}
  Result<ActorHandle<Phoenix>> bear(std::string diary, std::string name, bool detached) {
    ActorOptions options{
        .name = std::move(name), .name_space = detached ? "family" : "", .detached = detached};
    auto child = runtime_.spawn<Phoenix>(options, diary);
    if (child.ok()) child_ = *child;
    return child;
  }
  int pid() const { return ::getpid(); }

 private:
  Runtime& runtime_;
  ActorHandle<Phoenix> child_;
};

inline void register_lifecycle_actors(Runtime& rt) {
  rt.register_actor<Phoenix>("Phoenix", &Phoenix::pid, &Phoenix::add, &Phoenix::die_once,
                             &Phoenix::note_behind);
  rt.register_actor<Parent>("Parent", &Parent::bear, &Parent::pid);
}

}  // namespace runtime::test
