// HeldProgram: a program that can be started as it was when it was opened, whatever becomes of its
// file.
#pragma once

#include <string>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// An upgrade replaces a program's file, or removes it for a moment, while processes of it run and
/// have to start others like themselves.
class HeldProgram {
 public:
  /// This process's own program is opened as it runs, others by their path. A program that cannot
  /// be opened is looked up by its path at each start.
  explicit HeldProgram(std::string path);

  /// What to execute, in this process and in those that it forks. It is the path while the file
  /// there is the one that was opened, so that the process has its name. Else it is the open file.
  std::string to_execute() const;

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace runtime
