// PreemptionWatch: looks again and again whether this machine is about to be taken away.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/node/preemption.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// Something that can be asked.
class PreemptionSource {
 public:
  using Done = UniqueFunction<void(Result<PreemptionAnswer>)>;
  virtual ~PreemptionSource() = default;

  /// For messages: "the file /run/preempted".
  virtual std::string name() const = 0;
  /// `done` runs once, at the deadline at the latest; not after the source is gone. One question at
  /// a time. On the loop.
  virtual void ask(Deadline deadline, Done done) = 0;
};

std::unique_ptr<PreemptionSource> file_source(std::string path);
/// A shell's command line: exit code 0 and the words of read_preemption_words().
std::unique_ptr<PreemptionSource> command_source(EventLoop& loop, std::string command);
std::unique_ptr<PreemptionSource> url_source(EventLoop& loop, PreemptionUrl url);
/// Those that the options name. Errors: kInvalidArgument.
Result<std::vector<std::unique_ptr<PreemptionSource>>> preemption_sources(
    EventLoop& loop, const PreemptionOptions& options);

/// Lives on the event loop. What a source cannot answer is warned of, once and then seldom, and
/// asked again.
class PreemptionWatch {
 public:
  /// `on_notice` is called with each notice, and answers (later, once) whether that was taken care
  /// of: then the watch ends.
  using OnNotice =
      std::function<void(const PreemptionNotice& notice, UniqueFunction<void(bool done)> answer)>;
  PreemptionWatch(EventLoop& loop, std::unique_ptr<PreemptionSource> source,
                  std::chrono::milliseconds poll, std::chrono::milliseconds timeout,
                  OnNotice on_notice);
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

  /// Looks no more.
  void stop();

 private:
  void look();
  void look_later();
  void on_answer(Result<PreemptionAnswer> answer);
  void warn(const Status& why);

  const std::unique_ptr<PreemptionSource> source_;
  const std::chrono::milliseconds poll_;
  const std::chrono::milliseconds timeout_;
  const OnNotice on_notice_;
  Timer timer_;
  std::string warned_of_;
  Deadline warned_at_ = Deadline::min();
  std::uint64_t unheard_ = 0;  // failures since
  bool stopped_ = false;
  Lifetime lifetime_;
};

}  // namespace runtime
