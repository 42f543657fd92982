// JobManager: the begins and ends of jobs, and questions about them.
#pragma once

#include <functional>
#include <string>

#include "runtime/control/control.h"
#include "runtime/head/actor_control.h"
#include "runtime/head/group_control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/published_objects.h"

namespace runtime {

class JobManager {
 public:
  /// `place_pending`: something was released, so all that waits looks for a place.
  JobManager(const HeadContext& context, ActorControl& actors, GroupControl& groups,
             PublishedObjects& published, std::function<void()> place_pending)
      : context_(context),
        actors_(actors),
        groups_(groups),
        published_(published),
        place_pending_(std::move(place_pending)) {}

  void serve(const HeadCall& call, control::StartJob& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::EndJob& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::QueryJob& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::CancelJob& body, ControlAnswerer answer);

  /// An actor that outlived the job is dead.
  void outliving_actor_died(JobId job);
  /// Jobs that the node no longer runs have ended; it gets to know the ends of others.
  void node_returned(const control::RegisterNode& body);
  void node_lost(NodeId node, const std::string& text);

 private:
  Status check_start(const HeadCall& call, const JobInfo& info) const;
  void end(const command::EndJob& end);
  /// Frees what the job has of the cluster, but for what outlives the job.
  void release(JobId job);
  void end_actors(JobId job);
  void drop_groups(JobId job);
  void announce_end(JobId job);
  void announce_end(JobId job, NodeId node);

  const HeadContext& context_;
  ActorControl& actors_;
  GroupControl& groups_;
  PublishedObjects& published_;
  const std::function<void()> place_pending_;
};

}  // namespace runtime
