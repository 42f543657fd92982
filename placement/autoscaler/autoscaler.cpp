#include "placement/autoscaler/autoscaler.h"

#include <unistd.h>

#include <utility>

#include "placement/autoscaler/status.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/key_value_client.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"

namespace placement {

using runtime::Result;
using runtime::Status;
using runtime::steady_now;
using std::chrono::milliseconds;

namespace {

constexpr auto kHeadTimeout = std::chrono::seconds(10);
constexpr auto kTellAtLeast = std::chrono::seconds(5);  // so that one sees that it is alive
constexpr auto kTellAtMost = std::chrono::seconds(1);
constexpr auto kListEvery = std::chrono::seconds(30);
constexpr auto kAgain =
    std::chrono::milliseconds(10);  // after an outcome: several may come together
constexpr auto kEndAtOnce = std::chrono::milliseconds(1);

std::string new_id(const std::string& type) {
  return type + "-" + runtime::NodeId::random().hex().substr(0, 12);
}

std::int64_t unix_ms() { return static_cast<std::int64_t>(runtime::unix_milliseconds()); }

}  // namespace

Autoscaler::Autoscaler(runtime::EventLoop& loop, Options options, runtime::NodeClient& client,
                       std::unique_ptr<NodeProvider> provider)
    : loop_(loop),
      options_(std::move(options)),
      client_(client),
      provider_(std::move(provider)),
      planner_(options_.config, new_id),
      timer_(loop.context()),
      removal_(loop, planner_, *provider_,
               [this](std::function<void(Status)> then) { record(std::move(then)); }),
      epoch_ms_(unix_ms() -
                std::chrono::duration_cast<milliseconds>(steady_now().time_since_epoch()).count()) {
}

Autoscaler::~Autoscaler() = default;

void Autoscaler::start(std::function<void(Status)> failed) {
  failed_ = std::move(failed);
  load();
}

void Autoscaler::load() {
  runtime::KeyValueClient(client_).get(
      kRecordsKey, false, runtime::deadline_after(kHeadTimeout),
      lifetime_.guard([this](Result<std::string> text) {
        if (stopping_) return;
        if (!text.ok() &&
            text.status().code() != runtime::ErrorCode::kNotFound) {  // the head is away
          LOG(warn, "its records cannot be read yet: {}", text.status().message());
          timer_.expires_after(options_.config.interval);
          return timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
            if (!ec) load();
          }));
        }
        if (text.ok()) {
          auto records = decode_records(*text);
          if (!records.ok()) return failed_(records.status());
          LOG(info, "continues with {} nodes from before", records->size());
          planner_.restore(std::move(*records), steady_now());
          recorded_ = *text;
        }
        arm(milliseconds(0));
      }));
}

void Autoscaler::arm(milliseconds after) {
  timer_.expires_after(after);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec && !stopping_) look();
  }));
}

void Autoscaler::outcome() {
  if (stopping_) return;
  if (is_looking_)
    again_ = true;
  else
    arm(kAgain);
}

// -- Look, decide, record, act

void Autoscaler::look() {
  is_looking_ = true;
  runtime::ClusterClient(client_).demand(runtime::deadline_after(kHeadTimeout),
                                         lifetime_.guard([this](Result<runtime::Demand> demand) {
                                           if (stopping_) return;
                                           if (demand.ok()) return decide(*demand);
                                           LOG(warn, "the head does not say what waits: {}",
                                               demand.status().message());
                                           is_looking_ = false;
                                           arm(options_.config.interval);
                                         }));
}

void Autoscaler::decide(const runtime::Demand& demand) {
  bound_ = demand.bound;
  unlisted_ = demand.unlisted;
  PlanActions actions = planner_.step(demand, steady_now());
  log_news();
  record([this, actions = std::move(actions)](const Status& status) {
    if (status.ok()) {
      carry_out(actions);
      if (lists_ && listed_at_ + kListEvery <= steady_now()) list();
    } else {
      LOG(warn, "nothing is done before the head has recorded it: {}", status.message());
      planner_.not_done(actions);
    }
    is_looking_ = false;
    if (stopping_) return;
    tell(false);
    arm(std::exchange(again_, false) ? milliseconds(kAgain) : options_.config.interval);
  });
}

void Autoscaler::record(std::function<void(Status)> then) {
  std::string text = encode_records(planner_.records());
  if (text == recorded_) return then({});
  runtime::KeyValueClient(client_).put(
      kRecordsKey, text, runtime::deadline_after(kHeadTimeout),
      lifetime_.guard([this, text, then = std::move(then)](const Status& status) {
        if (status.ok()) recorded_ = text;
        then(status);
      }));
}

void Autoscaler::carry_out(const PlanActions& actions) {
  if (stopping_) return;
  for (const NodeRecord& node : actions.add) {
    const NodeType* type = options_.config.type(node.type);
    if (!type) {  // the configuration has changed since it was asked for
      planner_.added(
          node.id, runtime::invalid_argument("there is no node type '" + node.type + "' any more"),
          steady_now());
      continue;
    }
    provider_->add({node.id, *type, node.capacity, type->labels_of(node.id, node.capacity)},
                   lifetime_.guard([this, id = node.id](const Status& status) {
                     planner_.added(id, status, steady_now());
                     log_news();
                     outcome();
                   }));
  }
  for (const NodeRecord& node : actions.retire) retire(node);
  for (const NodeRecord& node : actions.remove) {
    provider_->remove(node.id, lifetime_.guard([this, id = node.id](const Status& status) {
      planner_.removed(id, status, steady_now());
      log_news();
      outcome();
    }));
  }
}

void Autoscaler::retire(const NodeRecord& node) {
  runtime::ClusterClient(client_).drain_idle_node(
      node.node, NodePlanner::kDrainTime, "the autoscaler removes it: " + node.reason,
      runtime::deadline_after(kHeadTimeout),
      lifetime_.guard([this, id = node.id](const Status& status) {
        planner_.retired(id, status, steady_now());
        log_news();
        outcome();
      }));
}

void Autoscaler::list() {
  const runtime::Deadline asked = listed_at_ = steady_now();
  provider_->list(lifetime_.guard([this, asked](Result<std::vector<std::string>> ids) {
    if (ids.ok()) {
      planner_.listed(*ids, asked, steady_now());
      log_news();
      return outcome();
    }
    lists_ = ids.status().code() != runtime::ErrorCode::kUnimplemented;
    LOG(warn, "the provider does not list its nodes: {}", ids.status().message());
  }));
}

void Autoscaler::log_news() {
  NodePlanner::Time last = logged_;
  for (const auto* notes : {&planner_.decisions(), &planner_.failures()}) {
    for (const auto& note : *notes) {
      if (note.at <= logged_) continue;
      LOG(info, "{}", note.text);
      last = std::max(last, note.at);
    }
  }
  logged_ = last;
}

void Autoscaler::tell(bool at_once) {
  const auto now = steady_now();
  auto json = status_json(planner_, {options_.config_file, epoch_ms_, bound_, unlisted_});
  std::string content = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const bool is_due =
      content == reported_ ? reported_at_ + kTellAtLeast <= now : reported_at_ + kTellAtMost <= now;
  if (!is_due && !at_once) return;
  reported_ = std::move(content);
  reported_at_ = now;
  json["reported_at_ms"] = unix_ms();
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  runtime::KeyValueClient(client_).put(
      kStatusKey, std::move(text), runtime::deadline_after(kHeadTimeout), [](const Status& status) {
        if (!status.ok()) LOG(warn, "its status is not told: {}", status.message());
      });
}

// -- The end

void Autoscaler::stop(std::function<void()> done) {
  if (std::exchange(stopping_, true)) return;
  timer_.cancel();
  provider_->abandon();
  // Those that the provider ends one by one need not wait for what they run: it ends with the
  // cluster.
  for (const auto& [id, node] : planner_.nodes()) {
    if (node.node.is_none() || provider_->ends_with_cluster()) continue;
    runtime::ClusterClient(client_).drain_node(node.node, kEndAtOnce, "the cluster stops",
                                               runtime::deadline_after(kHeadTimeout),
                                               [](const Status&) {});
  }
  removal_.start(options_.config.stop_timeout, std::move(done));
}

}  // namespace placement
