// `starling list nodes|actors|workers|objects|jobs|placement-groups`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace placement {

struct ListOptions {
  std::string address;
  std::string kind;
  std::vector<std::string> filters;  // FIELD=VALUE
  std::string state;                 // short for the filter state=...
  std::uint64_t limit = 0;           // of actors; 0: all
  std::string after;                 // an actor's id: those behind it
  bool json = false;
};

/// Returns the exit code: 2 when there is no such kind of thing.
int list_command(const ListOptions& options);

}  // namespace placement
