// History: the requests of a cluster's clients and their answers, with the checks that must hold.
// It is in a file that many processes append to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime::test {

/// Microseconds of the monotonic clock, which all processes of the machine share.
std::int64_t now_us();

enum class Op : char {
  kAdd = 'a',   // Tally::add: marks `value` as done by the client and saves the actor's state. key:
                // the actor's name
  kEcho = 'e',  // a call from actor to actor. key: who calls
  kCreate = 'c',   // an anonymous actor is made, called and killed
  kPut = 'p',      // a pair is written. key, value
  kGet = 'g',      // a pair is read
  kSum = 's',      // 1 is added to a key; value: the sum
  kPublish = 'v',  // value: the version
  kGang =
      'w',  // the cluster's account of the client's placement group and its actors. key: the group
  kName = 'n',  // an actor is made under a name that others want too. key: the name
};

/// What a client asked for, and, once `end` is not 0, what it was told.
struct Event {
  std::int32_t client = 0;
  Op op = Op::kAdd;
  std::string key{};
  std::int64_t value = 0;
  std::int64_t begin = 0;  // now_us()
  std::int64_t end = 0;
  std::int64_t patience = 0;  // from begin on, in microseconds: the deadline that was given
  std::int64_t stalled = 0;   // how long the client's own process did not run meanwhile
  ErrorCode code = ErrorCode::kOk;
  std::uint64_t incarnation = 0;  // of the actor that answered
  std::string text{};             // of a failure

  bool ok() const { return end != 0 && code == ErrorCode::kOk; }
  std::string to_string() const;
};

/// An actor began to live.
struct Life {
  std::string key{};
  std::uint64_t incarnation = 0;
  std::int32_t pid = 0;
  std::int64_t begin = 0;
};

/// What is there in the end.
struct Outcome {
  std::map<std::string, std::map<std::int32_t, std::vector<std::uint64_t>>>
      tallies;  // by actor and client, bits; client -1: how many were done twice
  std::map<std::string, std::int64_t> published;  // latest versions
};

struct History {
  std::vector<Event> events;  // in the order of their ends; those without one last
  std::vector<Life> lives;
  std::vector<std::int64_t>
      unsettled;  // when something happened, or ended, that may take an actor's life

  static History read(const std::filesystem::path& file);
  /// The last events before a moment and the first behind it, for people.
  std::string excerpt(std::int64_t around, std::size_t lines) const;
};

/// Appends whole lines; what was written survives the process.
class HistoryFile {
 public:
  explicit HistoryFile(const std::filesystem::path& file);
  void begin(const Event& event) { write('B', event); }
  void end(const Event& event) { write('E', event); }
  void life(const Life& life);
  void unsettled(std::int64_t when);

 private:
  void write(char kind, const Event& event);
  FileDescriptor file_;
};

struct Rules {
  /// An answer may come this late after its deadline: processes wait for a processor too.
  std::int64_t grace_us = 3'000'000;
  /// How long after something that may take an actor's life its name may go to another: the head
  /// may learn of it late.
  std::int64_t unsettled_us = 15'000'000;
};

/// What is wrong with a history; empty if nothing is. Each says what was promised, and by which
/// events it was broken.
std::vector<std::string> violations(const History& history, const Outcome& outcome,
                                    const Rules& rules = {});

inline bool has_bit(const std::vector<std::uint64_t>& bits, std::int64_t at) {
  const auto word = static_cast<std::size_t>(at / 64);
  return word < bits.size() && (bits[word] >> (at % 64) & 1) != 0;
}
inline void set_bit(std::vector<std::uint64_t>& bits, std::int64_t at) {
  const auto word = static_cast<std::size_t>(at / 64);
  if (bits.size() <= word) bits.resize(word + 1);
  bits[word] |= std::uint64_t{1} << (at % 64);
}

}  // namespace runtime::test
