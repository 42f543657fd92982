#include "runtime/control/demand.h"

namespace runtime {

namespace {

void add_count(std::string& text, std::uint64_t count, const char* what, const char* which = "") {
  if (count == 0) return;
  if (!text.empty()) text += ", ";
  text += std::to_string(count) + " " + what + (count == 1 ? "" : "s") + which;
}

}  // namespace

std::string NodeUse::describe() const {
  std::string text;
  add_count(text, actors, "actor");
  add_count(text, bundles, "bundle");
  add_count(text, jobs, "driver");
  add_count(text, sole_copies, "published object", " that no other node has");
  return text;
}

}  // namespace runtime
