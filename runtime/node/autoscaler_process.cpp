#include "runtime/node/autoscaler_process.h"

#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/process/file_util.h"
#include "runtime/process/session.h"

namespace runtime {

namespace {

constexpr std::size_t kLeftBytesMax = 64 << 10;

}  // namespace

AutoscalerProcess::AutoscalerProcess(EventLoop& loop, AutoscalerProcessOptions options)
    : loop_(loop),
      options_(std::move(options)),
      left_file_(options_.session_dir / "logs" / "autoscaler-left") {  // a killed node leaves logs
  KeptProcessOptions kept;
  kept.name = "the autoscaler";
  kept.log = options_.session_dir / "logs" / "autoscaler.log";
  kept.logs = options_.logs;
  kept.spec.program = options_.program;
  kept.spec.argv = {options_.program};
  kept.spec.argv.insert(kept.spec.argv.end(), options_.arguments.begin(), options_.arguments.end());
  kept.spec.argv.insert(kept.spec.argv.end(),
                        {"--address", options_.address, "--left", left_file_.string()});
  kept.spec.env = token_variables(options_.session_dir.parent_path() / "token");
  process_ = std::make_unique<KeptProcess>(loop_, std::move(kept));
}

void AutoscalerProcess::end(std::function<void(std::string left)> done) {
  ending_ = true;
  auto ended = lifetime_.guard([this, done = std::move(done)] {
    process_.reset();
    done(read_what_is_left());
  });
  process_->end(options_.stop_time + kControlGrace,
                lifetime_.guard([this, ended = std::move(ended)] { loop_.post(ended); }));
}

std::string AutoscalerProcess::read_what_is_left() const {
  std::error_code error;
  if (!std::filesystem::exists(left_file_, error)) return "";  // it has not come to begin
  auto text = read_file(left_file_, kLeftBytesMax);
  std::filesystem::remove(left_file_, error);
  std::string left = text.ok()
                         ? std::move(*text)
                         : "what the autoscaler leaves cannot be read: " + text.status().message();
  if (left.empty()) return left;
  left += "\n  see " + (options_.session_dir / "logs" / "autoscaler.log").string();
  LOG(error, "{}", left);
  return left;
}

}  // namespace runtime
