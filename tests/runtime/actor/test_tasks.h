// Functions for the tests of tasks.
#pragma once

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "tests/support/gate.h"
#include "tests/support/pauses.h"

namespace runtime::test {

inline int twice(int n) { return 2 * n; }
inline int add(int a, int b) { return a + b; }
inline int never_registered(int n) { return n; }
inline int process_id() { return ::getpid(); }
inline std::string join_words(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}
inline int sleep_and_tell_pid(int ms) {
  support::work_for(std::chrono::milliseconds(ms));
  return ::getpid();
}
/// 1 once the gate at that path is open.
inline int pass_gate(const std::string& gate) { return support::Gate(gate).pass() ? 1 : 0; }
inline void throw_text(const std::string& text) { throw std::runtime_error(text); }
inline Result<int> note_and_fail(const std::string& file) {
  std::ofstream(file, std::ios::app) << "x";
  return invalid_argument("not today");
}
/// Ends its process until `times` runs have left a note; then how many had.
inline int die_unless_noted(const std::string& file, int times) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  const int noted = error ? 0 : static_cast<int>(size);
  if (noted >= times) return noted;
  std::ofstream(file, std::ios::app) << "x" << std::flush;
  ::raise(SIGKILL);
  return -1;
}

/// Each run leaves a line with its process in the file.
inline void note_run(const std::string& file) {
  std::ofstream(file, std::ios::app) << ::getpid() << "\n" << std::flush;
}
inline std::vector<float> make_noted(const std::string& file, std::uint64_t count, float value) {
  note_run(file);
  return std::vector<float>(count, value);
}
inline std::vector<float> scale_noted(const std::string& file, std::vector<float> values,
                                      float factor) {
  note_run(file);
  for (float& value : values) value *= factor;
  return values;
}
inline double sum_floats(const std::vector<float>& values) {
  double total = 0;
  for (float value : values) total += value;
  return total;
}
/// Fails until `times` runs have left a note.
inline Result<int> fail_unless_noted(const std::string& file, int times) {
  std::ifstream in(file);
  const auto noted = static_cast<int>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
  if (noted >= times) return noted;
  note_run(file);
  return unavailable("only " + std::to_string(noted) + " have run");
}
inline Result<int> wait_for_cancel(const CallContext& call, const std::string& file) {
  note_run(file);
  (void)call.sleep_for(std::chrono::seconds(60));
  return call.status().ok() ? Result<int>(0) : Result<int>(call.status());
}
inline void never_end(const std::string& file) {
  note_run(file);
  support::work_for(std::chrono::seconds(600));
}
/// Where tasks of this process find the runtime.
inline Runtime* task_runtime = nullptr;
/// Each waits for the next one, `depth` deep.
inline Result<int> nest(int depth) {
  if (depth == 0) return 0;
  Result<int> inner = task_runtime->get(task_runtime->task(&nest, depth - 1));
  if (!inner.ok()) return inner.status();
  return *inner + 1;
}

/// Runs tasks itself.
class Delegator {
 public:
  explicit Delegator(Runtime& runtime) : runtime_(runtime) {}
  Result<int> twice_all(int count) {
    std::vector<ObjectRef<int>> refs;
    for (int i = 0; i < count; ++i) refs.push_back(runtime_.task(&twice, i));
    auto values = runtime_.objects().gather(refs);
    if (!values.ok()) return values.status();
    int sum = 0;
    for (int value : *values) sum += value;
    return sum;
  }
  /// The task's result goes on to the caller.
  ObjectRef<std::vector<float>> make(const std::string& file, std::uint64_t count, float value) {
    return runtime_.task(&make_noted, file, count, value);
  }

 private:
  Runtime& runtime_;
};

inline void register_test_tasks(Runtime& rt) {
  task_runtime = &rt;
  rt.register_function("nest", &nest);
  rt.register_function("twice", &twice);
  rt.register_function("add", &add);
  rt.register_function("process_id", &process_id);
  rt.register_function("join_words", &join_words);
  rt.register_function("sleep_and_tell_pid", &sleep_and_tell_pid);
  rt.register_function("pass_gate", &pass_gate);
  rt.register_function("throw_text", &throw_text);
  rt.register_function("note_and_fail", &note_and_fail);
  rt.register_function("die_unless_noted", &die_unless_noted);
  rt.register_function("make_noted", &make_noted);
  rt.register_function("scale_noted", &scale_noted);
  rt.register_function("sum_floats", &sum_floats);
  rt.register_function("fail_unless_noted", &fail_unless_noted);
  rt.register_function("wait_for_cancel", &wait_for_cancel);
  rt.register_function("never_end", &never_end);
  rt.register_actor<Delegator>("Delegator", &Delegator::twice_all, &Delegator::make);
}

}  // namespace runtime::test
