#include "runtime/node/job_record.h"

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

}  // namespace runtime
