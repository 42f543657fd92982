#include "runtime/head/cluster_tables.h"

#include <utility>

#include "runtime/core/check.h"

namespace runtime {

void ClusterTables::apply(const HeadCommand& command) {
  std::visit([this](const auto& c) { on(c); }, command);
}

template <class Command>
void ClusterTables::on(const Command& c) {
  const auto try_table = [&](auto& table) {
    if constexpr (requires { table.apply(c); }) {
      table.apply(c);
      return true;
    } else {
      return false;
    }
  };
  const bool applied =
      std::apply([&](auto&... table) { return (try_table(table) || ...); }, tables());
  CHECK(applied);
}

void ClusterTables::on(const command::RemoveNode& c) {
  nodes_.apply(c);
  published_.remove_node(c.node, c.why);
}

void ClusterTables::on(const command::EndJob& c) {
  jobs_.end(c, ++order_);
  if (!actors_.outlive(c.job)) pairs_.drop(c.job);
  forget_ended_jobs();
}

void ClusterTables::on(const command::ReleaseJob& c) {
  if (!actors_.outlive(c.job)) pairs_.drop(c.job);
}

void ClusterTables::on(const command::ActorDead& c) {
  const std::optional<JobId> served = actors_.end(c, ++order_);
  if (!served) return;
  if (!jobs_.runs(*served)) pairs_.drop(*served);
  forget_ended_jobs();
}

void ClusterTables::on(const command::TokenChanged& c) {
  token_ = c.state;
  token_changed_ = follows_;
}

void ClusterTables::forget_ended_jobs() {
  // What outlives a job is restarted from the job's program, which therefore stays known.
  jobs_.forget_ended([this](JobId job) { return actors_.outlive(job); });
}

// -- The journal

journal::Counters ClusterTables::counters() const {
  return {actors_.next_incarnation() - 1, nodes_.version(), order_};
}

void ClusterTables::follow() {
  follows_ = true;
  written_ = counters();
  std::apply([](auto&... table) { (table.follow(), ...); }, tables());
}

std::vector<JournalWrite> ClusterTables::changes() {
  std::vector<JournalWrite> writes;
  if (!follows_) return writes;
  if (counters() != written_) {
    written_ = counters();
    writes.push_back({journal::key_of_counters(), journal::encode(written_)});
  }
  if (std::exchange(token_changed_, false))
    writes.push_back({journal::key_of_token(), journal::encode(journal::Token{token_})});
  std::apply([&](auto&... table) { (table.take_changes(writes), ...); }, tables());
  return writes;
}

Status ClusterTables::restore(const journal::Entry& entry) {
  return std::visit([this](const auto& which) { return take(which); }, entry);
}

template <class Entry>
Status ClusterTables::take(const Entry& entry) {
  Status status = internal_error("no table takes this entry");
  const auto try_table = [&](auto& table) {
    if constexpr (requires { table.restore(entry); }) status = table.restore(entry);
  };
  std::apply([&](auto&... table) { (try_table(table), ...); }, tables());
  return status;
}

Status ClusterTables::take(const journal::Counters& entry) {
  actors_.restore_incarnation(entry.incarnation);
  nodes_.restore_version(entry.nodes_version);
  order_ = entry.order;
  written_ = counters();
  return {};
}

Status ClusterTables::take(const journal::Token& entry) {
  token_ = entry.state;
  return {};
}

Status ClusterTables::end_restore() {
  nodes_.end_restore();
  if (Status status = actors_.end_restore(jobs_); !status.ok()) return status;
  if (Status status = groups_.end_restore(); !status.ok()) return status;
  return jobs_.end_restore();
}

}  // namespace runtime
