// The three kinds of PreemptionSource.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/core/lifetime.h"
#include "runtime/core/log.h"
#include "runtime/node/http_get.h"
#include "runtime/node/preemption_watch.h"
#include "runtime/process/child_process.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {

constexpr const char* kTokenTarget = "/latest/api/token";
constexpr const char* kTokenSeconds = "21600";
constexpr const char* kActionTarget = "/latest/meta-data/spot/instance-action";
constexpr const char* kPreemptedTarget = "/computeMetadata/v1/instance/preempted";

class FileSource final : public PreemptionSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {}
  std::string name() const override { return "the file " + path_; }
  void ask(Deadline, Done done) override { done(look()); }

 private:
  Result<PreemptionAnswer> look() const {
    // A pipe of that name must not hold the node up.
    FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file && (errno == ENOENT || errno == ENOTDIR)) return PreemptionAnswer();
    if (!file) return errno_status(errno, path_);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return errno_status(errno, path_);
    if (!S_ISREG(info.st_mode)) return invalid_argument(path_ + " is not a regular file");
    char text[kPreemptionBytesMax + 1];
    const ssize_t got = ::read(file.get(), text, sizeof text);
    if (got < 0) return errno_status(errno, path_);
    if (got > static_cast<ssize_t>(kPreemptionBytesMax))
      return invalid_argument(path_ + " has more than " + std::to_string(kPreemptionBytesMax) +
                              " bytes");
    if (got == 0) return PreemptionAnswer(PreemptionNotice{"preemption", std::nullopt});
    return read_preemption_words({text, static_cast<std::size_t>(got)});
  }

  const std::string path_;
};

class CommandSource final : public PreemptionSource {
 public:
  CommandSource(EventLoop& loop, std::string command)
      : loop_(loop), command_(std::move(command)), timer_(loop.context()) {}
  std::string name() const override { return "the command `" + command_ + "`"; }

  void ask(Deadline deadline, Done done) override {
    done_ = std::move(done);
    output_.clear();
    ProcessSpec spec;
    spec.program = "/bin/sh";
    spec.argv = {"sh", "-c", command_};
    ProcessHandlers handlers;
    handlers.on_output = [this](bool is_stderr, std::string_view bytes) {
      // One byte more than may be tells that there is too much.
      if (!is_stderr)
        output_.append(bytes.substr(
            0, kPreemptionBytesMax + 1 - std::min(output_.size(), kPreemptionBytesMax + 1)));
    };
    handlers.on_exit = [this](const DeathCause& cause) { on_exit(cause); };
    auto process = ChildProcess::start(loop_, spec, std::move(handlers));
    if (!process.ok()) return finish(process.status());
    process_ = std::move(*process);
    timer_.expires_at(deadline);
    timer_.async_wait(lifetime_.guard([this](const boost::system::error_code& ec) {
      if (!ec) finish(deadline_exceeded("it has not ended in time, and was killed"));
    }));
  }

 private:
  void on_exit(const DeathCause& cause) {
    if (cause.exit_code != 0) return finish(unavailable("it " + cause.text));
    if (output_.size() > kPreemptionBytesMax)
      return finish(invalid_argument("it prints more than " + std::to_string(kPreemptionBytesMax) +
                                     " bytes"));
    finish(read_preemption_words(output_));
  }

  void finish(Result<PreemptionAnswer> answer) {
    timer_.cancel();
    process_.reset();  // with its whole group
    if (auto done = std::exchange(done_, nullptr)) done(std::move(answer));
  }

  EventLoop& loop_;
  const std::string command_;
  Timer timer_;
  std::unique_ptr<ChildProcess> process_;
  std::string output_;
  Done done_;
  Lifetime lifetime_;
};

std::string describe_status(const HttpAnswer& answer) {
  return "it answers with status " + std::to_string(answer.status);
}

class AwsSource final : public PreemptionSource {
 public:
  AwsSource(EventLoop& loop, PreemptionUrl url) : loop_(loop), url_(std::move(url)) {}
  std::string name() const override {
    return "the metadata endpoint of AWS at " + url_.host + ":" + url_.port;
  }

  void ask(Deadline deadline, Done done) override {
    if (!token_.empty()) return ask_action(deadline, std::move(done));
    HttpRequest request{true,
                        url_.host,
                        url_.port,
                        kTokenTarget,
                        {{"X-aws-ec2-metadata-token-ttl-seconds", kTokenSeconds}}};
    http_request(
        loop_, std::move(request), kPreemptionBytesMax, deadline,
        lifetime_.guard([this, deadline,
                         done = std::move(done)](Result<HttpAnswer> answer) mutable {
          if (!answer.ok()) return done(answer.status());
          if (answer->status != 200)
            return done(unavailable(describe_status(*answer) + " when asked for a token (IMDSv2)"));
          auto token = read_aws_token(answer->body);
          if (!token.ok()) return done(token.status());
          token_ = std::move(*token);
          ask_action(deadline, std::move(done));
        }));
  }

 private:
  void ask_action(Deadline deadline, Done done) {
    HttpRequest request{
        false, url_.host, url_.port, kActionTarget, {{"X-aws-ec2-metadata-token", token_}}};
    http_request(
        loop_, std::move(request), kPreemptionBytesMax, deadline,
        lifetime_.guard([this, done = std::move(done)](Result<HttpAnswer> answer) mutable {
          if (!answer.ok()) return done(answer.status());
          if (answer->status == 404) return done(PreemptionAnswer());
          if (answer->status == 401)
            token_.clear();  // it has run out: the next look asks for another
          if (answer->status != 200)
            return done(unavailable(describe_status(*answer) +
                                    (answer->status == 401 ? ": the token has run out" : "")));
          done(read_aws_action(answer->body, std::chrono::milliseconds(unix_milliseconds())));
        }));
  }

  EventLoop& loop_;
  const PreemptionUrl url_;
  std::string token_;
  Lifetime lifetime_;
};

class GcpSource final : public PreemptionSource {
 public:
  GcpSource(EventLoop& loop, PreemptionUrl url) : loop_(loop), url_(std::move(url)) {}
  std::string name() const override {
    return "the metadata endpoint of GCP at " + url_.host + ":" + url_.port;
  }

  void ask(Deadline deadline, Done done) override {
    HttpRequest request{
        false, url_.host, url_.port, kPreemptedTarget, {{"Metadata-Flavor", "Google"}}};
    http_request(loop_, std::move(request), kPreemptionBytesMax, deadline,
                 lifetime_.guard([done = std::move(done)](Result<HttpAnswer> answer) mutable {
                   if (!answer.ok()) return done(answer.status());
                   if (answer->status != 200) return done(unavailable(describe_status(*answer)));
                   if (answer->header("metadata-flavor") != "Google")
                     return done(invalid_argument(
                         "it is not GCP's: its answer lacks the header Metadata-Flavor: Google"));
                   done(read_gcp_preempted(answer->body));
                 }));
  }

 private:
  EventLoop& loop_;
  const PreemptionUrl url_;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<PreemptionSource> file_source(std::string path) {
  return std::make_unique<FileSource>(std::move(path));
}

std::unique_ptr<PreemptionSource> command_source(EventLoop& loop, std::string command) {
  return std::make_unique<CommandSource>(loop, std::move(command));
}

std::unique_ptr<PreemptionSource> url_source(EventLoop& loop, PreemptionUrl url) {
  if (url.kind == PreemptionUrl::Kind::kAws)
    return std::make_unique<AwsSource>(loop, std::move(url));
  return std::make_unique<GcpSource>(loop, std::move(url));
}

Result<std::vector<std::unique_ptr<PreemptionSource>>> preemption_sources(
    EventLoop& loop, const PreemptionOptions& options) {
  std::vector<std::unique_ptr<PreemptionSource>> sources;
  if (!options.file.empty()) sources.push_back(file_source(options.file));
  if (!options.command.empty()) sources.push_back(command_source(loop, options.command));
  if (!options.url.empty()) {
    auto url = PreemptionUrl::parse(options.url);
    if (!url.ok()) return url.status().with_context("--preemption-url");
    sources.push_back(url_source(loop, std::move(*url)));
  }
  return sources;
}

}  // namespace runtime
