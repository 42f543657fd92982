// Children of tests: what they write, and whether they are gone.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "runtime/process/pipe.h"
#include "runtime/process/spawn.h"

namespace runtime {

/// `sh -c script`, with its stdout in this pipe.
inline SpawnSpec shell(std::string script, const Pipe& output) {
  SpawnSpec spec;
  spec.program = "sh";
  spec.argv = {"sh", "-c", std::move(script)};
  spec.setup.descriptors = {{output.write.get(), 1}};
  return spec;
}

inline Pipe test_pipe() {
  Result<Pipe> pipe = make_pipe();
  EXPECT_TRUE(pipe.ok()) << pipe.status().message();
  return pipe.ok() ? *std::move(pipe) : Pipe{};
}

inline SpawnedProcess spawned(const SpawnSpec& spec) {
  Result<SpawnedProcess> process = spawn_process(spec);
  EXPECT_TRUE(process.ok()) << process.status().message();
  return process.ok() ? *std::move(process) : SpawnedProcess();
}

/// All that comes until no process has the writing end, for ten seconds.
inline std::string read_to_end(Pipe& pipe, bool& ended) {
  pipe.write.reset();
  std::string text;
  ended = false;
  while (true) {
    pollfd ready{pipe.read.get(), POLLIN, 0};
    if (::poll(&ready, 1, 10'000) <= 0) return text;
    char block[4096];
    const ssize_t got = ::read(pipe.read.get(), block, sizeof block);
    if (got <= 0) {
      ended = got == 0;
      return text;
    }
    text.append(block, static_cast<std::size_t>(got));
  }
}

inline std::string read_to_end(Pipe& pipe) {
  bool ended = false;
  std::string text = read_to_end(pipe, ended);
  EXPECT_TRUE(ended) << "a process still has the pipe";
  return text;
}

/// Its next line, while processes have the pipe.
inline std::string read_line(const Pipe& pipe) {
  std::string line;
  for (char letter; ::read(pipe.read.get(), &letter, 1) == 1 && letter != '\n';) line += letter;
  return line;
}

/// What the script writes, once all have ended.
inline std::string output_of(SpawnSpec spec, Pipe& pipe) {
  SpawnedProcess process = spawned(spec);
  std::string text = read_to_end(pipe);
  if (process) {
    EXPECT_EQ(process.reap().exit_code, 0);
  }
  return text;
}

}  // namespace runtime
