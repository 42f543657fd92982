#include "runtime/worker/worker.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/call/call_wire.h"
#include "runtime/call/process.h"
#include "runtime/control/actor_directory.h"
#include "runtime/core/end_process.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/observe/stack_handler.h"
#include "runtime/transport/refusal_log.h"

namespace runtime {

namespace {
/// How long a method that runs when the worker is told to end may go on; and how long callers have
/// to finish their handshakes.
constexpr std::chrono::milliseconds kGrace{500};

/// What the actors of a worker have of its process.
class HostingProcess final : public HostProcess {
 public:
  HostingProcess(std::shared_ptr<Process> process, ActorMakers makers, ActorExecutor& executor)
      : process_(std::move(process)),
        context_{process_->loop(),
                 process_->registry(),
                 process_->activity(),
                 process_->blocked_calls(),
                 process_->object_context()->shut_down,
                 process_->callers()->objects,
                 process_->object_context(),
                 *process_,
                 *this,
                 executor,
                 std::move(makers)} {}
  /// Each holder has a share of the process.
  static std::shared_ptr<const HostContext> make_context(std::shared_ptr<Process> process,
                                                         ActorMakers makers,
                                                         ActorExecutor& executor) {
    auto hosting =
        std::make_shared<HostingProcess>(std::move(process), std::move(makers), executor);
    const HostContext* context = &hosting->context_;
    return {std::move(hosting), context};
  }

  std::optional<DrainNotice> drain_notice() const override { return process_->drain_notice(); }
  void set_resident(ActorInstance actor) override { process_->set_resident(actor); }
  void park(ActorId actor) override {
    ActorDirectory(process_->node())
        .park(actor, deadline_after(std::chrono::seconds(30)), [](const Status& status) {
          if (!status.ok())
            LOG(debug, "giving back the resources of a task that waits: {}", status.message());
        });
  }

 private:
  const std::shared_ptr<Process> process_;
  const HostContext context_;
};

}  // namespace

Worker::Worker(std::shared_ptr<Process> process, ActorMakers makers)
    : process_(std::move(process)),
      executor_(process_->loop()),
      actors_(std::make_shared<ActorTable>(
          HostingProcess::make_context(process_, std::move(makers), executor_))) {}

Worker::~Worker() {
  // A worker that was drained ends while its node is still there to call.
  process_->node().set_on_shutdown({});
  process_->node().set_on_drain_actor({});
  // They would keep what serves them, and with it the whole process's state.
  process_->loop().post([callers = callers_] {
    for (auto& [serial, weak] : *callers) {
      if (auto channel = weak.lock()) channel->close(unavailable("the worker process has ended"));
    }
  });
  if (listener_) listener_->stop();
}

Result<std::unique_ptr<Worker>> Worker::start(std::shared_ptr<Process> process,
                                              ActorMakers makers) {
  auto node = NodeClient::connect_worker(process->loop(), deadline_after(std::chrono::seconds(10)));
  if (!node.ok()) return node.status();
  process->attach(*std::move(node));
  if (process->activity()) install_stack_handler(process->activity());
  std::unique_ptr<Worker> worker(new Worker(process, std::move(makers)));

  auto endpoint = Endpoint::unix_socket(process->node().worker_socket_path());
  if (!endpoint.ok()) return endpoint.status();
  ListenerCallbacks callbacks;
  callbacks.on_channel = [actors = worker->actors_,
                          callers = worker->callers_](std::shared_ptr<Channel> channel) {
    (*callers)[channel->serial()] = channel;
    actors->on_channel(channel);
    channel->set_handler([actors](const std::shared_ptr<Channel>& from, Message message) {
      actors->on_message(from, std::move(message));
    });
    channel->set_on_close([actors, callers, raw = channel.get()](const Status&) {
      callers->erase(raw->serial());
      actors->on_channel_closed(raw);
    });
  };
  callbacks.on_refused = [log = std::make_shared<RefusalLog>("a caller at ")](
                             const std::string& peer, const Status& why) { log->note(peer, why); };
  auto listener = Listener::listen(process->loop(), *endpoint, process->node().credentials(),
                                   std::move(callbacks));
  if (!listener.ok()) return listener.status();
  worker->listener_ = *std::move(listener);
  worker->serve_node();
  return worker;
}

void Worker::serve_node() {
  NodeClient& client = process_->node();
  client.set_on_attach([raw = listener_.get()](FileDescriptor socket, const Inbound& inbound) {
    raw->adopt(std::move(socket), inbound);
  });
  client.set_on_shutdown([this](const Status& reason) { on_shutdown(reason); });
  client.set_on_actor_died([weak = std::weak_ptr(process_)](ActorId actor) {
    if (auto self = weak.lock()) self->on_actor_died(actor);
  });
  client.set_on_drain_actor(
      [this](ActorId actor, std::uint64_t incarnation, NodeClient::Done answer) {
        const bool shared = actors_->is_shared();
        actors_->stop_after_calls(actor, incarnation, [this, shared, answer = std::move(answer)] {
          answer({});
          if (!shared) finish();  // what was drained was all there is to this process
        });
      });
  process_->hear_of_drains(
      [weak = std::weak_ptr(actors_), here = client.node_id()](NodeId draining) {
        if (auto actors = weak.lock(); actors && draining == here) actors->tell_of_drain();
      });
  client.set_on_stop_actor(
      [weak = std::weak_ptr(actors_)](ActorId actor, std::uint64_t incarnation) {
        if (auto actors = weak.lock()) actors->stop(actor, incarnation, {});
      });
  client.set_on_constructor_awaited(
      [weak = std::weak_ptr(process_)](ActorId actor, const std::string& bytes) {
        auto self = weak.lock();
        Result<CallNotice> notice = decode_notice(Buffer::copy_of(bytes));
        if (self && notice.ok()) self->blocked_calls().on_waits({actor, nullptr, 0}, notice->waits);
      });
  // Last: from here on the node's requests come in.
  // Weak, since the actors hold the process, and this is part of it.
  client.set_on_create_actor([weak = std::weak_ptr(actors_), this](ActorSpec spec,
                                                                   std::uint64_t incarnation,
                                                                   NodeClient::Done answer) {
    auto actors = weak.lock();
    if (!actors) return answer(cancelled("the worker process is ending"));
    if (spec.shared) executor_.want_threads(std::max(1u, std::thread::hardware_concurrency()));
    actors->build(std::move(spec), incarnation, std::move(answer));
  });
}

// A caller that is just connecting is told too that its calls have not run.
void Worker::finish() {
  auto timer = std::make_shared<Timer>(process_->loop().executor(), kGrace);
  timer->async_wait(
      [timer, life = std::weak_ptr(callers_), this](const boost::system::error_code& ec) {
        if (auto held = life.lock(); held && !ec) executor_.stop();
      });
  listener_->finish([timer, this] {
    timer->cancel();
    executor_.stop();
  });
}

void Worker::run() {
  executor_.run();
  actors_->clear();
}

void Worker::on_shutdown(const Status& reason) {
  LOG(debug, "ending: {}", reason.message());
  executor_.stop();
  actors_->cancel_running();
  // A method that runs does not end by itself; the process must.
  auto timer = std::make_shared<Timer>(process_->loop().executor(), kGrace);
  timer->async_wait([timer](const boost::system::error_code& ec) {
    if (!ec) end_process(0);
  });
  watchdog_ = timer;
}

}  // namespace runtime
