#include "runtime/call/method.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace runtime {

const void* MethodKey::address() const {
  std::uintptr_t first = 0;
  std::memcpy(&first, pointer.data(), sizeof first);
#if defined(__aarch64__) || defined(__arm__)
  // There the mark of virtual methods is in the second word.
  std::ptrdiff_t second = 0;
  std::memcpy(&second, pointer.data() + sizeof first, sizeof second);
  return second & 1 ? nullptr : reinterpret_cast<const void*>(first);
#else
  return first & 1 ? nullptr : reinterpret_cast<const void*>(first);
#endif
}

MethodId method_id(const std::string& class_name, const std::string& method_name,
                   const std::string& signature) {
  // The separator cannot occur in the parts.
  std::string identity = class_name + '\0' + method_name + '\0' + signature;
  MethodId id = XXH3_64bits(identity.data(), identity.size());
  return id == 0 ? 1 : id;
}

}  // namespace runtime
