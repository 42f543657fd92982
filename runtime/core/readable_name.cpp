#include "runtime/core/readable_name.h"

#include <cxxabi.h>

#include <cstdlib>

namespace runtime {

std::string readable_name(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string readable = text ? text : mangled;
  std::free(text);
  return readable;
}

}  // namespace runtime
