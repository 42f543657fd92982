// Notices that the node's machine is about to be taken away: from a file, a command, or a cloud's
// metadata endpoint. The words they answer with, as pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace runtime {

struct PreemptionNotice {
  std::string reason;                             // "preemption: /run/preempted"
  std::optional<std::chrono::milliseconds> left;  // until the machine goes; nothing: not said
  bool operator==(const PreemptionNotice&) const = default;
};

/// What a source says; nothing: all is well.
using PreemptionAnswer = std::optional<PreemptionNotice>;

/// Of each kind at most one; empty: none.
struct PreemptionOptions {
  std::string file;
  std::string command;
  std::string url;                          // see PreemptionUrl
  std::chrono::milliseconds poll{1000};     // between two looks
  std::chrono::milliseconds timeout{2000};  // for one; 0 is refused
  bool any() const { return !file.empty() || !command.empty() || !url.empty(); }
};

/// Where a cloud's metadata endpoint is.
struct PreemptionUrl {
  enum class Kind { kAws, kGcp };
  Kind kind = Kind::kAws;
  std::string host;
  std::string port = "80";

  /// "aws" and "gcp": where those clouds have theirs; "aws+http://HOST:PORT",
  /// "gcp+http://HOST:PORT". Errors: kInvalidArgument, with what is expected.
  static Result<PreemptionUrl> parse(const std::string& text);
  bool operator==(const PreemptionUrl&) const = default;
};

/// Of an answer more than this is not read.
inline constexpr std::size_t kPreemptionBytesMax = 4096;

// Whatever is not an answer of the expected form is an error (kInvalidArgument), never a notice. An
// endpoint may be a proxy's, a captive portal's or broken.

/// Of a file or a command: nothing or "none"; "preempted", "preempted 25s". A file that is there
/// and empty is a notice.
Result<PreemptionAnswer> read_preemption_words(std::string_view text);
/// Of AWS's spot/instance-action: {"action": "terminate", "time": "2026-09-18T08:22:00Z"}. `now`
/// since the Unix epoch: the time left is from then. A time in the past, or more than an hour
/// ahead, is no time: this machine's clock or that one's is wrong.
Result<PreemptionAnswer> read_aws_action(std::string_view body, std::chrono::milliseconds now);
/// Of GCP's instance/preempted: TRUE or FALSE.
Result<PreemptionAnswer> read_gcp_preempted(std::string_view body);
/// Of AWS's api/token: what may stand in a header.
Result<std::string> read_aws_token(std::string_view body);

}  // namespace runtime
