#include "runtime/process/log_lines.h"

namespace runtime {

std::string LogLines::prefix() const {
  return "(" + (class_name.empty() ? std::string("worker") : class_name) +
         " pid=" + std::to_string(pid) + ", node=" + node.short_hex() + ") ";
}

}  // namespace runtime
