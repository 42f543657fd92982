#include "placement/app/cli_nodes.h"

#include <algorithm>
#include <mutex>

#include "runtime/control/cluster_client.h"
#include "runtime/core/printable_text.h"

namespace placement {

namespace {
constexpr std::chrono::seconds kPatience{5};
}

runtime::Result<std::unique_ptr<NodeSet>> NodeSet::connect(const std::string& address) {
  auto found = runtime::find_cluster(address);
  if (!found.ok()) return found.status();
  std::unique_ptr<NodeSet> set(new NodeSet());
  set->address_ = *found;
  const runtime::Deadline deadline = runtime::deadline_after(kPatience);
  auto first = runtime::NodeClient::connect(set->loop_, *found, runtime::Role::kTool, deadline);
  if (!first.ok()) return first.status();
  auto state = wait_for<runtime::ClusterState>(set->loop_, deadline, [&](auto done) {
    runtime::ClusterClient(**first).state(deadline, done);
  });
  if (!state.ok()) return state.status();
  set->cluster_ = *std::move(state);
  const runtime::NodeId here = (*first)->node_id();
  for (const runtime::NodeInfo& info : set->cluster_.nodes) {
    Entry entry{info, nullptr, {}};
    if (info.node == here) {
      entry.client = *std::move(first);
    } else {
      runtime::ClusterAddress other = *found;
      other.address = info.address;
      other.unix_path.clear();
      auto client = runtime::NodeClient::connect(set->loop_, other, runtime::Role::kTool,
                                                 runtime::deadline_after(kPatience));
      if (client.ok())
        entry.client = *std::move(client);
      else
        entry.trouble = client.status();
    }
    set->nodes_.push_back(std::move(entry));
  }
  return set;
}

NodeSet::~NodeSet() { nodes_.clear(); }

NodeSet::Entry* NodeSet::find(const runtime::NodeId& node) {
  auto found = std::find_if(nodes_.begin(), nodes_.end(),
                            [&](const Entry& entry) { return entry.info.node == node; });
  return found == nodes_.end() ? nullptr : &*found;
}

std::vector<runtime::Result<runtime::ObserveAnswer>> NodeSet::ask_each(
    std::vector<Question> questions, std::chrono::milliseconds patience) {
  struct Asking {
    explicit Asking(runtime::EventLoop& loop) : all(loop) {}
    std::mutex mutex;
    std::vector<runtime::Result<runtime::ObserveAnswer>> answers;
    std::size_t outstanding = 1;  // this call itself, until it has asked everything
    runtime::Event all;

    void answered() {
      if (--outstanding == 0) all.set();
    }
  };
  auto asking = std::make_shared<Asking>(loop_);
  const runtime::Deadline deadline = runtime::deadline_after(patience);
  for (const Question& question : questions) {
    const Entry& entry = nodes_[question.node];
    asking->answers.emplace_back(entry.client ? runtime::deadline_exceeded("no answer in time")
                                              : entry.trouble);
    asking->outstanding += entry.client ? 1 : 0;
  }
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto& client = nodes_[questions[i].node].client;
    if (!client) continue;
    runtime::ClusterClient(*client).observe(
        std::move(questions[i].request), deadline,
        [asking, i](runtime::Result<runtime::ObserveAnswer> answer) {
          std::lock_guard lock(asking->mutex);
          asking->answers[i] = std::move(answer);
          asking->answered();
        });
  }
  {
    std::lock_guard lock(asking->mutex);
    asking->answered();
  }
  loop_.run_until(asking->all, deadline + std::chrono::seconds(1));
  std::lock_guard lock(asking->mutex);
  return asking->answers;
}

std::vector<runtime::Result<runtime::ObserveAnswer>> NodeSet::ask_all(
    const runtime::ObserveControl& request, std::chrono::milliseconds patience) {
  std::vector<Question> questions;
  for (std::size_t i = 0; i < nodes_.size(); ++i) questions.push_back({i, request});
  auto answers = ask_each(std::move(questions), patience);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    nodes_[i].trouble = answers[i].ok() ? runtime::Status() : answers[i].status();
  return answers;
}

bool NodeSet::report_silent() const {
  bool any = false;
  for (const Entry& entry : nodes_) {
    if (entry.trouble.ok()) continue;
    std::fprintf(stderr, "node %s at %s has not answered: %s\n",
                 entry.info.node.short_hex().c_str(), entry.info.address.c_str(),
                 runtime::printable_text(entry.trouble.message()).c_str());
    any = true;
  }
  return any;
}

}  // namespace placement
