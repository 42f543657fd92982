// Registry: the actor classes that a program can run and call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "runtime/call/drain_hooks.h"
#include "runtime/call/fwd.h"
#include "runtime/call/invoke.h"
#include "runtime/call/method.h"
#include "runtime/call/state_hooks.h"
#include "runtime/core/result.h"

namespace runtime {

/// One method of a registered class.
struct MethodEntry {
  MethodKey key;
  std::string name;    // "add"; empty until names are resolved
  std::string symbol;  // what identifies it besides the signature
  MethodId id = 0;
  Invoker invoke = nullptr;
  CoroutineInvoker coroutine = nullptr;  // instead of invoke
  std::string concurrency_group;         // empty: the default one
  std::chrono::milliseconds timeout{0};  // 0: none
  bool takes_context = false;
  bool is_stream = false;  // yields values through a StreamWriter
};

/// A registered class: its wire name and its methods. Immutable after registration, apart from the
/// lazily resolved names.
class ActorClass {
 public:
  ActorClass(std::string name, std::type_index type) : name_(std::move(name)), type_(type) {}

  const std::string& name() const { return name_; }
  std::type_index type() const { return type_; }

  /// Null: not registered.
  const MethodEntry* find(const MethodKey& key) const;
  const MethodEntry* find(MethodId id) const;
  const std::vector<MethodEntry>& methods() const { return methods_; }
  /// Whether a method is a coroutine: then the actor runs on one thread.
  bool has_coroutines() const;
  /// Whether a method has that name.
  bool has_method(const std::string& name) const;
  /// Whether a method is assigned to the concurrency group.
  bool has_group(const std::string& group) const;

  const StateHooks& state_hooks() const { return state_hooks_; }

  void add(MethodEntry entry);
  /// Once, after all methods were added. Names those that have no name by the symbols of their
  /// addresses (empty: not known), and gives all their ids.
  void resolve(const std::unordered_map<std::uintptr_t, std::string>& symbols);
  void set_state_hooks(StateHooks hooks) { state_hooks_ = hooks; }
  /// Null: it has none.
  DrainHook drain_hook() const { return drain_hook_; }
  void set_drain_hook(DrainHook hook) { drain_hook_ = hook; }

 private:
  std::string name_;
  std::type_index type_;
  std::vector<MethodEntry> methods_;
  StateHooks state_hooks_;
  DrainHook drain_hook_ = nullptr;
  std::unordered_map<MethodKey, std::size_t, MethodKeyHash> by_key_;
  std::unordered_map<MethodId, std::size_t> by_id_;
};

/// Filled before the runtime starts, then sealed: names are looked up and ids computed; after that
/// it is only read, from any thread.
class Registry {
 public:
  /// CHECKs that neither name nor type is registered yet and that it is not sealed.
  ActorClass& add(std::string name, std::type_index type);
  /// Resolves the names of all methods in one pass over the program's symbols. Idempotent.
  void seal();
  bool sealed() const { return sealed_; }

  /// Errors: kInvalidArgument "class ... is not registered with this program".
  Result<const ActorClass*> find(std::type_index type) const;
  Result<const ActorClass*> find(const std::string& name) const;

 private:
  std::vector<std::unique_ptr<ActorClass>> classes_;
  bool sealed_ = false;
};

}  // namespace runtime
