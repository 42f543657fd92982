#include "placement/app/cli_jobs.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "placement/app/cli_logs.h"
#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/job_client.h"
#include "runtime/core/nearest.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/time_text.h"

namespace placement {

namespace {

using Json = nlohmann::ordered_json;

constexpr auto kStopTimeout =
    std::chrono::seconds(20);  // a job has 5 s between SIGTERM and SIGKILL
constexpr auto kJobPoll = std::chrono::milliseconds(100);

runtime::Result<runtime::JobInfo> fetch_job(const std::string& address, runtime::JobId job) {
  return ask_cluster<runtime::JobInfo>(
      address, [job](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::JobClient(client).query(job, deadline, done);
      });
}

runtime::Result<runtime::JobInfo> fetch_job(const std::string& address, const std::string& what) {
  auto state = fetch_state(address);
  if (!state.ok()) return state.status();
  auto found = find_job(*state, what);
  if (!found.ok()) return found.status();
  return fetch_job(address, found->job);
}

/// What it reserves, while it has it or waits for it.
const runtime::GroupState* place_of(const runtime::JobInfo& job,
                                    const runtime::ClusterState& state) {
  if (job.place.is_none()) return nullptr;
  const auto found =
      std::find_if(state.groups.begin(), state.groups.end(),
                   [&](const runtime::GroupState& group) { return group.spec.group == job.place; });
  return found == state.groups.end() ? nullptr : &*found;
}

std::string waits_for(const runtime::JobInfo& job, const runtime::ClusterState& state) {
  const runtime::GroupState* place = job.running && job.pid == 0 ? place_of(job, state) : nullptr;
  if (!place) return "";
  if (!place->placed) return place->pending_reason;
  return "node " + place->nodes.front().short_hex() +
         " has what it takes; the command that submitted it has still to start it there (is it "
         "stopped, or sending files?)";
}

}  // namespace

runtime::Result<runtime::JobInfo> find_job(const runtime::ClusterState& state,
                                           const std::string& what) {
  std::vector<const runtime::JobInfo*> found;
  std::vector<std::string> ids;
  for (const runtime::JobInfo& job : state.jobs) {
    ids.push_back(job.job.hex());
    if (!what.empty() && ids.back().starts_with(what)) found.push_back(&job);
  }
  if (found.size() == 1) return *found[0];
  if (found.size() > 1) {
    std::string text = "'" + what + "' may be job";
    for (const runtime::JobInfo* job : found) text += " " + job->job.hex() + ",";
    text.back() = ';';
    return runtime::invalid_argument(text + " give more digits");
  }
  return runtime::not_found(
      "no job has an id that begins with '" + what + "'" +
      (ids.empty() ? "; see starling job list" : runtime::offer_closest(what, ids)));
}

std::optional<int> exit_code_of(const runtime::JobInfo& job) {
  if (job.running) return std::nullopt;
  if (job.end.signal != 0) return 128 + job.end.signal;
  if (job.end.exit_code >= 0) return job.end.exit_code;
  return std::nullopt;
}

// The keys below are what scripts rely on: add, never rename.

Json to_json(const runtime::JobInfo& job, const runtime::ClusterState& state) {
  const std::optional<int> code = exit_code_of(job);
  const runtime::GroupState* place = place_of(job, state);
  return Json{{"id", job.job.hex()},
              {"command", job.command},
              {"state", std::string(runtime::job_state(job))},
              {"exit_code", code ? Json(*code) : Json()},
              {"reason", job.running ? "" : job.end.text},
              {"pending_reason", waits_for(job, state)},
              {"resources", place ? Json(place->spec.bundles.front()) : Json::object()},
              {"node", job.node.is_none() ? "" : job.node.hex()},
              {"pid", job.pid},
              {"submitted", job.submitted},
              {"user", job.user},
              {"started", job.running && job.pid == 0 ? "" : runtime::time_text(job.started_ms)},
              {"ended", runtime::time_text(job.ended_ms)}};
}

void print_row(const runtime::JobInfo& job, const runtime::ClusterState& state) {
  const std::string waits = waits_for(job, state);
  const std::string end = !job.running    ? "  " + job.end.text
                          : waits.empty() ? ""
                                          : "  waits: " + waits;
  say("  %s  %-9s node %s  pid %-7d %s%s\n", job.job.short_hex().c_str(),
      std::string(runtime::job_state(job)).c_str(),
      job.node.is_none() ? "-" : job.node.short_hex().c_str(), job.pid,
      runtime::printable_text(job.command, /*one_line=*/true).c_str(), end.c_str());
}

void print_jobs(const runtime::ClusterState& state, bool with_ended) {
  for (const runtime::JobInfo& job : state.jobs) {
    if (job.running || with_ended) print_row(job, state);
  }
}

int job_list_command(const std::string& address, bool json) {
  auto state = fetch_state(address);
  if (!state.ok()) return fail(state.status());
  if (!json) {
    print_jobs(*state, true);
    return 0;
  }
  Json list = Json::array();
  for (const runtime::JobInfo& job : state->jobs) list.push_back(to_json(job, *state));
  print_json(list);
  return 0;
}

int job_status_command(const std::string& address, const std::string& what, bool json) {
  auto state = fetch_state(address);
  if (!state.ok()) return fail(state.status());
  auto found = find_job(*state, what);
  if (!found.ok()) return fail(found.status());
  auto job = fetch_job(address, found->job);
  if (!job.ok()) return fail(job.status());
  if (json) {
    Json shown = to_json(*job, *state);
    shown["log_tail"] = job->end.output_tail;
    print_json(shown);
    return 0;
  }
  const std::optional<int> code = exit_code_of(*job);
  say("job %s: %s%s%s\n", job->job.hex().c_str(), std::string(runtime::job_state(*job)).c_str(),
      job->running ? "" : ", ", job->running ? "" : job->end.text.c_str());
  say("  command  %s\n  node     %s, pid %d%s%s\n",
      runtime::printable_text(job->command, /*one_line=*/true).c_str(),
      job->node.short_hex().c_str(), job->pid, job->user.empty() ? "" : ", user ",
      job->user.c_str());
  if (!job->running || job->pid != 0)
    say("  started  %s\n", runtime::time_text(job->started_ms).c_str());
  if (const std::string waits = waits_for(*job, *state); !waits.empty())
    say("  waits    %s\n", waits.c_str());
  if (job->ended_ms != 0) say("  ended    %s\n", runtime::time_text(job->ended_ms).c_str());
  if (code) say("  exit code %d\n", *code);
  if (!job->end.output_tail.empty()) {
    say("  the last lines of its log (starling job logs %s):\n%s\n", job->job.short_hex().c_str(),
        job->end.output_tail.c_str());
  }
  return 0;
}

int job_logs_command(const std::string& address, const std::string& what, bool follow) {
  auto job = fetch_job(address, what);
  if (!job.ok()) return fail(job.status());
  return logs_command(address, job->job.hex(), follow);
}

int job_stop_command(const std::string& address, const std::string& what) {
  auto job = fetch_job(address, what);
  if (!job.ok()) return fail(job.status());
  const std::string name = "job " + job->job.short_hex();
  if (!job->running) {
    say("%s has ended already: %s, %s\n", name.c_str(),
        std::string(runtime::job_state(*job)).c_str(), job->end.text.c_str());
    return 0;
  }
  auto asked = ask_cluster<bool>(
      address, [&](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::JobClient(client).cancel(job->job, deadline, [done](runtime::Status status) {
          status.ok() ? done(true) : done(std::move(status));
        });
      });
  if (!asked.ok()) return fail(asked.status());
  for (const runtime::Deadline patience = runtime::deadline_after(kStopTimeout);
       runtime::steady_now() < patience; std::this_thread::sleep_for(kJobPoll)) {
    job = fetch_job(address, job->job);
    if (!job.ok()) return fail(job.status());
    if (job->running) continue;
    say("%s %s: %s\n", name.c_str(), std::string(runtime::job_state(*job)).c_str(),
        job->end.text.c_str());
    return 0;
  }
  return fail(runtime::deadline_exceeded(name + " was cancelled and has not ended yet"));
}

}  // namespace placement
