// The two values that a rule compared, in the form in which it compared them.
#pragma once

#include <optional>
#include <string>

namespace rl {

struct Compared {
  std::optional<std::string> answer;        // of the response; nullopt: it has none
  std::optional<std::string> ground_truth;  // nullopt: the row has none
};

}  // namespace rl
