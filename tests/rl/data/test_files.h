// Files that are gone after the test, files that come with the tests, and the toy's tokenizer.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "rl/data/toy.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/log.h"

namespace rl::testing {

inline std::string data_file(const std::string& name) {
  return STARLING_SOURCE_DIR "/tests/rl/data/files/" + name;
}

inline Tokenizer toy_tokenizer() {
  auto tokenizer = Tokenizer::from_json(toy_tokenizer_json(), "toy");
  CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

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
