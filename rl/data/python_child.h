// A child process that runs a Python class of the user's: a program goes in, lines go both ways.
#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/result.h"
#include "runtime/process/spawned_process.h"
#include "runtime/transport/file_descriptor.h"

namespace rl {

/// A resource; one thread. Waited for when it is destroyed: a program ends with its input, or when
/// no process reads what it writes.
class PythonChild {
 public:
  /// python3, or what STARLING_PYTHON names, with `program` behind kPythonPrelude and `setup` as
  /// its argument. It answers on descriptor 3, reads its standard input, and what it prints goes to
  /// stderr. `key` is what asks for it. kUnavailable: no interpreter.
  static runtime::Result<PythonChild> start(const std::string& program,
                                            const nlohmann::ordered_json& setup,
                                            const std::string& key);

  PythonChild(PythonChild&& other) noexcept;
  PythonChild& operator=(PythonChild&&) = delete;
  ~PythonChild();

  /// False: it is gone.
  bool send(std::string_view line);

  /// Its next line; nothing at the end. Valid until the next call.
  std::optional<std::string_view> line();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  PythonChild(runtime::SpawnedProcess process, runtime::FileDescriptor requests,
              runtime::FileDescriptor answers);

  runtime::SpawnedProcess process_;
  runtime::FileDescriptor requests_;
  std::unique_ptr<std::FILE, CloseFile> answers_;
  char* line_ = nullptr;
  std::size_t line_size_ = 0;
};

}  // namespace rl
