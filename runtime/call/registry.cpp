#include "runtime/call/registry.h"

#include <algorithm>

#include "runtime/core/check.h"
#include "runtime/core/readable_name.h"
#include "runtime/observe/symbol.h"

namespace runtime {

namespace {

/// "add" of "_ZN7Counter3addEi", whose readable form is "Counter::add(int)".
std::string plain_name(const std::string& symbol) {
  std::string name = readable_name(symbol);
  if (name == symbol) return symbol;
  // "name[abi:cxx11]() const": says which std::string is returned.
  for (std::size_t tag = name.find("[abi:"); tag != std::string::npos; tag = name.find("[abi:")) {
    name.erase(tag, name.find(']', tag) - tag + 1);
  }
  // Up to the parameter list, which is the last top-level "(".
  int depth = 0;
  std::size_t end = name.size();
  std::size_t start = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    char c = name[i];
    if (c == ')' || c == '>') ++depth;
    if (c == '(' || c == '<') --depth;
    if (depth == 0 && c == '(' && end == name.size()) end = i;
    if (depth == 0 && c == ':' && end != name.size()) {
      start = i + 1;
      break;
    }
  }
  return name.substr(start, end - start);
}

/// The text a method has on the wire instead of a name that cannot be found. It fits this very
/// program only, so that methods of different programs are never mistaken for each other.
std::string nameless(std::size_t position) {
  static const std::uint64_t fingerprint = program_fingerprint();
  return "#" + std::to_string(position) + "@" + std::to_string(fingerprint);
}

/// 0: a method has none (it is virtual).
std::uintptr_t address_of(const MethodEntry& method) {
  return reinterpret_cast<std::uintptr_t>(method.key.address());
}

}  // namespace

const MethodEntry* ActorClass::find(const MethodKey& key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &methods_[found->second];
}

const MethodEntry* ActorClass::find(MethodId id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &methods_[found->second];
}

bool ActorClass::has_group(const std::string& group) const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [&](const MethodEntry& method) { return method.concurrency_group == group; });
}

bool ActorClass::has_method(const std::string& name) const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [&](const MethodEntry& method) { return method.name == name; });
}

bool ActorClass::has_coroutines() const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [](const MethodEntry& method) { return method.coroutine != nullptr; });
}

void ActorClass::add(MethodEntry entry) {
  entry.symbol = entry.name;
  methods_.push_back(std::move(entry));
}

void ActorClass::resolve(const std::unordered_map<std::uintptr_t, std::string>& symbols) {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    MethodEntry& method = methods_[i];
    const auto symbol = symbols.find(address_of(method));
    if (method.name.empty() && symbol != symbols.end() && !symbol->second.empty()) {
      method.symbol = symbol->second;
      method.name = plain_name(symbol->second);
    }
    if (method.symbol.empty()) method.symbol = nameless(i);
    if (method.name.empty()) method.name = "method " + std::to_string(i);
    method.id = method_id(name_, method.symbol, method.key.type.name());
    by_key_.emplace(method.key, i);
    by_id_.emplace(method.id, i);
  }
}

ActorClass& Registry::add(std::string name, std::type_index type) {
  CHECK(!sealed_);
  for (const auto& known : classes_) {
    CHECK(known->name() != name);
    CHECK(known->type() != type);
  }
  return *classes_.emplace_back(std::make_unique<ActorClass>(std::move(name), type));
}

void Registry::seal() {
  if (sealed_) return;
  sealed_ = true;
  std::vector<std::uintptr_t> addresses;
  for (const auto& known : classes_) {
    for (const MethodEntry& method : known->methods()) {
      if (method.name.empty() && address_of(method) != 0) addresses.push_back(address_of(method));
    }
  }
  std::sort(addresses.begin(), addresses.end());
  const std::vector<std::string> names = function_names(addresses);
  std::unordered_map<std::uintptr_t, std::string> symbols;
  for (std::size_t i = 0; i < addresses.size(); ++i) symbols.emplace(addresses[i], names[i]);
  for (const auto& known : classes_) known->resolve(symbols);
}

Result<const ActorClass*> Registry::find(std::type_index type) const {
  for (const auto& known : classes_) {
    if (known->type() == type) return static_cast<const ActorClass*>(known.get());
  }
  const std::string name = readable_name(type.name());
  return invalid_argument("class " + name + " is not registered: call register_actor<" + name +
                          ">(\"" + name + "\", ...) in main");
}

Result<const ActorClass*> Registry::find(const std::string& name) const {
  for (const auto& known : classes_) {
    if (known->name() == name) return static_cast<const ActorClass*>(known.get());
  }
  std::string names;
  for (const auto& known : classes_) names += (names.empty() ? "" : ", ") + known->name();
  return invalid_argument("this program has no actor class \"" + name + "\"; it has " +
                          (names.empty() ? "none" : names));
}

}  // namespace runtime
