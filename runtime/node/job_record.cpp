#include "runtime/node/job_record.h"

#include <utility>

namespace runtime {

std::string command_text(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) {
    text += (text.empty() ? "" : " ") + word;
    if (text.size() > JobInfo::kCommandBytesMax)
      return text.substr(0, JobInfo::kCommandBytesMax - 3) + "...";
  }
  return text;
}

DeathCause death_of(std::string text) {
  DeathCause cause;
  cause.text = std::move(text);
  return cause;
}

}  // namespace runtime
