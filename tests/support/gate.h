// A gate between a test and what it runs in other threads and processes.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/support/eventually.h"

namespace support {

/// Two files: callers that arrive leave a byte in PATH.arrived, and wait until there is PATH. A
/// gate that is not opened lets them through after a minute and a half, so that no test hangs.
class Gate {
 public:
  explicit Gate(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Arrives and waits; true: the gate was opened.
  bool pass() const {
    std::ofstream(path_ + ".arrived", std::ios::app) << "x" << std::flush;
    return eventually([&] { return std::filesystem::exists(path_); }, std::chrono::seconds(90),
                      std::chrono::milliseconds(2));
  }
  /// How often pass() was called so far.
  int arrived() const {
    std::error_code none_yet;
    const auto size = std::filesystem::file_size(path_ + ".arrived", none_yet);
    return none_yet ? 0 : static_cast<int>(size);
  }
  /// Waits until pass() was called so often.
  bool is_reached(int times = 1) const {
    return eventually([&] { return arrived() >= times; });
  }
  void open() const { std::ofstream(path_).flush(); }

 private:
  std::string path_;
};

}  // namespace support
