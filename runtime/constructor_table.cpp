#include "runtime/constructor_table.h"

namespace runtime {

namespace {
/// Constant-initialised, so that entries of any translation unit find it ready.
constinit ConstructorEntry* first = nullptr;
}  // namespace

ConstructorEntry::ConstructorEntry(std::type_index actor_type, std::string_view arguments,
                                   Construct maker)
    : type(actor_type), signature(arguments), construct(maker), next(first) {
  first = this;
}

const ConstructorEntry* find_constructor(std::type_index type, std::string_view signature) {
  for (const ConstructorEntry* entry = first; entry != nullptr; entry = entry->next) {
    if (entry->type == type && entry->signature == signature) return entry;
  }
  return nullptr;
}

}  // namespace runtime
