// Files that are gone after the test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rl::testing {

class TempFile {
 public:
  explicit TempFile(const std::string& text, const std::string& extension = ".jsonl") {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / ("starling_data_" + std::to_string(getpid()) +
                                                      "_" + std::to_string(count++) + extension);
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace rl::testing
