#include "placement/app/cli_logs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/job_client.h"
#include "runtime/core/nearest.h"
#include "runtime/core/printable_pieces.h"
#include "runtime/process/log_file.h"

namespace placement {

namespace {

constexpr auto kLogsTimeout = std::chrono::seconds(10);
constexpr auto kFollowEvery = std::chrono::milliseconds(200);

/// A log file on some node.
struct Place {
  runtime::NodeId node;
  std::string file;
  std::string label;
  runtime::JobId job;  // whose log it is
};

std::vector<Place> find_logs(const runtime::ClusterState& state, const std::string& what) {
  std::vector<Place> places;
  // A name is that of the living, if there is one: the dead had it before.
  const bool lives =
      std::any_of(state.actors.begin(), state.actors.end(), [&](const runtime::ActorState& actor) {
        return actor.name == what && actor.phase != runtime::ActorPhase::kDead;
      });
  const auto is_named = [&](const runtime::ActorState& actor) {
    return actor.name == what && (!lives || actor.phase != runtime::ActorPhase::kDead);
  };
  // What is a name is not also taken for the first digits of something.
  const bool by_name = std::any_of(state.actors.begin(), state.actors.end(), is_named);
  for (const runtime::ActorState& actor : state.actors) {
    if (by_name ? is_named(actor) : actor.actor.hex().starts_with(what)) {
      places.push_back({actor.node,
                        "worker-" + actor.worker.hex() + ".log",
                        "actor " + actor.class_name + " " + actor.actor.short_hex(),
                        {}});
    }
  }
  if (by_name) return places;
  for (const runtime::JobInfo& job : state.jobs) {
    if (job.job.hex().starts_with(what))
      places.push_back(
          {job.node, "job-" + job.job.hex() + ".log", "job " + job.job.short_hex(), job.job});
  }
  for (const runtime::NodeInfo& node : state.nodes) {
    if (node.node.hex().starts_with(what))
      places.push_back({node.node, "", "node " + node.node.short_hex(), {}});
  }
  return places;
}

runtime::Result<Place> choose_log(const runtime::ClusterState& state, const std::string& what) {
  std::vector<Place> places = find_logs(state, what);
  if (places.size() == 1) return places[0];
  if (places.empty()) {
    std::vector<std::string> names;
    for (const runtime::ActorState& actor : state.actors) {
      names.push_back(actor.actor.hex());
      if (!actor.name.empty()) names.push_back(actor.name);
    }
    for (const runtime::JobInfo& job : state.jobs) names.push_back(job.job.hex());
    for (const runtime::NodeInfo& node : state.nodes) names.push_back(node.node.hex());
    return runtime::not_found(
        "no actor, job or node is called '" + what + "'" +
        (names.empty() ? "; see starling status" : runtime::offer_closest(what, names)));
  }
  std::string text = "'" + what + "' may be";
  for (const Place& place : places) text += " " + place.label + ",";
  text.back() = ';';
  return runtime::invalid_argument(text + " give more digits");
}

bool wrote_here(const runtime::ClusterState& state, runtime::JobId id) {
  return std::any_of(state.jobs.begin(), state.jobs.end(),
                     [&](const runtime::JobInfo& job) { return job.job == id && job.submitted; });
}

bool is_pending(const runtime::ClusterState& state, runtime::JobId id) {
  return std::any_of(state.jobs.begin(), state.jobs.end(), [&](const runtime::JobInfo& job) {
    return job.job == id && job.submitted && job.running && job.pid == 0;
  });
}

bool has_ended(runtime::EventLoop& loop, runtime::NodeClient& client, runtime::JobId id) {
  const runtime::Deadline deadline = runtime::deadline_after(kLogsTimeout);
  auto job = wait_for<runtime::JobInfo>(
      loop, deadline, [&](auto done) { runtime::JobClient(client).query(id, deadline, done); });
  return job.ok() ? !job->running : job.status().code() == runtime::ErrorCode::kNotFound;
}

/// Says once on stderr what is missing between what was printed and what comes now.
class MissingPart {
 public:
  explicit MissingPart(std::string label) : label_(std::move(label)) {}

  void before(const runtime::control::LogChunk& chunk) {
    if (chunk.position > printed_) {
      std::fflush(stdout);
      const std::string where = printed_ == 0
                                    ? "begins after its first "
                                    : "lacks, from byte " + std::to_string(printed_) + " on, ";
      std::fprintf(stderr,
                   "note: the log of %s %s%llu bytes, which were rotated away. At most the last "
                   "%llu MiB of a log are kept, fewer on a small disk\n",
                   label_.c_str(), where.c_str(),
                   static_cast<unsigned long long>(chunk.position - printed_),
                   static_cast<unsigned long long>(2 * runtime::LogFile::kBytesMax >> 20));
      printed_ = chunk.position;
    }
    printed_ += chunk.text.size();
  }

 private:
  const std::string label_;
  std::uint64_t printed_ = 0;
};

/// The log that a command prints, and the connection to its node.
class LogSource {
 public:
  static runtime::Result<LogSource> open(runtime::EventLoop& loop,
                                         const runtime::ClusterAddress& cluster) {
    auto client = runtime::NodeClient::connect(loop, cluster, runtime::Role::kTool,
                                               runtime::deadline_after(kLogsTimeout));
    if (!client.ok()) return client.status();
    return LogSource(loop, cluster, *std::move(client));
  }

  const Place& place() const { return place_; }
  runtime::NodeClient& client() { return *client_; }

  /// The log of what is called so; `waits`: for a job that has not begun.
  runtime::Status choose(const std::string& what, bool waits) {
    if (runtime::Status status = look(what); !status.ok()) return status;
    while (!place_.job.is_none() && is_pending(state_, place_.job)) {
      if (!waits)
        return runtime::unavailable(
            place_.label + " has not begun, so that it has no log yet; `starling why " +
            place_.job.short_hex() + "` says what it waits for, -f waits with it");
      std::this_thread::sleep_for(kFollowEvery);
      if (runtime::Status status = look(place_.job.hex()); !status.ok()) return status;
    }
    if (place_.node.is_none())
      return runtime::not_found(place_.label + " has not been started, so that it has no log");
    if (runtime::Status status = move_to_its_node(); !status.ok()) return status;
    if (!place_.job.is_none() && !wrote_here(state_, place_.job)) {
      return runtime::not_found(
          place_.label +
          " was not submitted: its driver was simply run, and has written where it was run");
    }
    return {};
  }

 private:
  LogSource(runtime::EventLoop& loop, runtime::ClusterAddress cluster,
            std::shared_ptr<runtime::NodeClient> client)
      : loop_(loop),
        cluster_(std::move(cluster)),
        client_(std::move(client)),
        place_{client_->node_id(), "", "", {}} {}

  runtime::Status look(const std::string& what) {
    const runtime::Deadline deadline = runtime::deadline_after(kLogsTimeout);
    auto asked = wait_for<runtime::ClusterState>(loop_, deadline, [&](auto done) {
      runtime::ClusterClient(*client_).state(deadline, done);
    });
    if (!asked.ok()) return asked.status();
    state_ = *std::move(asked);
    auto chosen = choose_log(state_, what);
    if (!chosen.ok()) return chosen.status();
    place_ = *std::move(chosen);
    return {};
  }

  runtime::Status move_to_its_node() {
    for (const runtime::NodeInfo& node : state_.nodes) {
      if (node.node != place_.node || node.node == client_->node_id()) continue;
      runtime::ClusterAddress other = cluster_;
      other.address = node.address;
      other.unix_path.clear();
      auto client = runtime::NodeClient::connect(loop_, other, runtime::Role::kTool,
                                                 runtime::deadline_after(kLogsTimeout));
      if (!client.ok()) return client.status().with_context("node " + node.node.short_hex());
      client_ = *std::move(client);
    }
    if (client_->node_id() != place_.node)
      return runtime::unavailable("the node of " + place_.label + " is gone, and its logs with it");
    return {};
  }

  runtime::EventLoop& loop_;
  runtime::ClusterAddress cluster_;
  std::shared_ptr<runtime::NodeClient> client_;
  Place place_;
  runtime::ClusterState state_;
};

/// Prints what there is of a log; `follow`: and what comes, until its job has ended.
runtime::Status print_log(runtime::EventLoop& loop, LogSource& source, bool follow) {
  const Place& place = source.place();
  MissingPart missing(place.label.empty() ? "node " + place.node.short_hex() : place.label);
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  runtime::PrintablePieces shown(STDOUT_FILENO);
  bool is_over = !follow;
  bool said_missing = false;
  while (true) {
    const runtime::Deadline deadline = runtime::deadline_after(kLogsTimeout);
    auto chunk = wait_for<runtime::control::LogChunk>(loop, deadline, [&](auto done) {
      runtime::ClusterClient(source.client()).read_log(place.file, file, offset, deadline, done);
    });
    const bool is_missing =
        chunk.status().code() == runtime::ErrorCode::kNotFound && !place.file.empty();
    if (is_missing && !std::exchange(said_missing, true))
      std::fprintf(stderr, "note: %s has written nothing, or its log was removed for room\n",
                   place.label.c_str());
    if (is_missing) chunk = runtime::control::LogChunk{};
    if (!chunk.ok()) return chunk.status();
    offset = chunk->next_offset;
    file = chunk->file;
    if (!chunk->text.empty()) missing.before(*chunk);
    const std::string text = chunk->text.empty() ? shown.finish() : shown.add(chunk->text);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!chunk->text.empty()) continue;
    std::fflush(stdout);
    if (is_over) return {};
    // Then once more, for what was written last.
    is_over = !place.job.is_none() && has_ended(loop, source.client(), place.job);
    std::this_thread::sleep_for(kFollowEvery);
  }
}

}  // namespace

int logs_command(const std::string& address, const std::string& what, bool follow) {
  auto cluster = runtime::find_cluster(address);
  if (!cluster.ok()) return fail(cluster.status());
  runtime::EventLoop loop;
  auto source = LogSource::open(loop, *cluster);
  if (!source.ok()) return fail(source.status());
  if (!what.empty()) {
    if (runtime::Status status = source->choose(what, follow); !status.ok()) return fail(status);
  }
  const runtime::Status printed = print_log(loop, *source, follow);
  return printed.ok() ? 0 : fail(printed);
}

}  // namespace placement
