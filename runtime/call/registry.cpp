#include "runtime/call/registry.h"

#include <algorithm>

#include "runtime/codec/readable_type.h"
#include "runtime/core/check.h"
#include "runtime/observe/symbol.h"

namespace runtime {

namespace {

/// "add" of "_ZN7Counter3addEi", whose readable form is "Counter::add(int)".
std::string plain_name(const std::string& symbol) {
  std::string name = readable_type(symbol);
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

/// The text a method has on the wire instead of a name that cannot be found: it fits this very
/// program only, so that methods of different programs are never mistaken for each other.
std::string nameless(std::size_t position) {
  static const std::uint64_t fingerprint = program_fingerprint();
  return "#" + std::to_string(position) + "@" + std::to_string(fingerprint);
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

void ActorClass::index() {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    MethodEntry& method = methods_[i];
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
  std::vector<std::pair<std::uintptr_t, MethodEntry*>> wanted;
  for (const auto& known : classes_) {
    for (MethodEntry& method : known->methods_) {
      if (method.name.empty() && method.key.address()) {
        wanted.emplace_back(reinterpret_cast<std::uintptr_t>(method.key.address()), &method);
      }
    }
  }
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::uintptr_t> addresses;
  for (const auto& [address, method] : wanted) addresses.push_back(address);
  std::vector<std::string> names = function_names(addresses);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (names[i].empty()) continue;
    wanted[i].second->symbol = names[i];
    wanted[i].second->name = plain_name(names[i]);
  }
  for (const auto& known : classes_) known->index();
}

Result<const ActorClass*> Registry::find(std::type_index type) const {
  for (const auto& known : classes_) {
    if (known->type() == type) return static_cast<const ActorClass*>(known.get());
  }
  const std::string name = readable_type(type.name());
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
