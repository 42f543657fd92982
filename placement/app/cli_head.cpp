#include "placement/app/cli_head.h"

#include <csignal>
#include <cstdio>

#include "runtime/core/asio.h"
#include "runtime/core/descriptor_limit.h"
#include "runtime/core/log.h"
#include "runtime/core/printable_text.h"
#include "runtime/head/head_process.h"
#include "runtime/head/sqlite_journal.h"
#include "runtime/node/head_child.h"
#include "runtime/process/session.h"

namespace placement {

int head_command(const HeadCommandOptions& options,
                 const std::function<std::unique_ptr<runtime::Scheduler>()>& make_scheduler) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGINT,
           SIG_IGN);  // a Ctrl-C is the node's to hear, which then ends this process in order
  runtime::start_log("head");
  const auto fail = [](const runtime::Status& why) {
    std::fprintf(stderr, "%s\n", runtime::printable_text(why.message()).c_str());
    return runtime::HeadChild::kExitUnusable;
  };
  auto cluster = runtime::ClusterId::from_hex(options.cluster);
  auto node = runtime::NodeId::from_hex(options.node);
  auto token = runtime::token_from_environment();
  if (!cluster.ok() || !node.ok() || !token.ok() || token->empty())
    return fail(runtime::invalid_argument("starling head is started by a node, not by hand"));
  runtime::raise_descriptor_limit();
  runtime::HeadProcessOptions process;
  process.cluster = *cluster;
  process.node = *node;
  process.token = *token;
  process.socket = options.socket;
  if (!options.journal.empty()) {
    process.open_journal =
        [folder = options.journal, again = options.again](
            runtime::EventLoop& loop) -> runtime::Result<std::unique_ptr<runtime::Journal>> {
      auto journal =
          runtime::SqliteJournal::open(loop, folder,
                                       again ? runtime::SqliteJournal::Missing::kIsRefused
                                             : runtime::SqliteJournal::Missing::kIsMade);
      if (!journal.ok()) return journal.status();
      return std::unique_ptr<runtime::Journal>(std::move(*journal));
    };
  }
  process.scheduler = make_scheduler();
  process.head.durable = options.durable;
  runtime::EventLoop loop;
  runtime::asio::signal_set signals(loop.context(), SIGTERM);
  auto head = runtime::HeadProcess::start(loop, std::move(process));
  if (!head.ok()) return fail(head.status());
  signals.async_wait([&head](boost::system::error_code ec, int) {
    if (!ec) (*head)->quit(runtime::cancelled("terminated"));
  });
  const runtime::Status end = (*head)->wait();
  LOG(info, "stopped: {}", end.message());
  head->reset();
  return 0;
}

}  // namespace placement
