// PublishedObjects: versions that are published under names, their copies on nodes, and who waits
// for one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/published_table.h"
#include "runtime/head/waiters.h"

namespace runtime {

class PublishedObjects {
 public:
  explicit PublishedObjects(const HeadContext& context) : context_(context) {}

  void serve(const HeadCall& call, control::Publish& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::FindPublished& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::Unpublish& body, ControlAnswerer answer);
  /// Drops the names that only the job could know, once it has ended.
  void drop_private_names(JobId job);
  /// These copies are no longer counted.
  void drop_copies(const std::vector<ObjectLocation>& copies);

  void tick(Deadline now);
  Deadline next_tick() const { return waiters_.earliest(); }

 private:
  struct Publishing;
  struct Waiter {
    control::FindPublished request;
    Deadline deadline;
    ControlAnswerer answer;
  };
  /// Errors: kInvalidArgument, naming both, unless it is larger than the latest.
  Status check_version(const PublishedTable::Name& name, std::uint64_t version) const;
  std::vector<NodeId> nodes_that_stay(NodeId first) const;
  void on_adopted(Publishing& publishing, Result<ControlAnswer> adopted);
  void add(const PublishedTable::Name& name, std::uint64_t version, std::uint32_t keep_last,
           PublishedValue value, std::string type);
  void drop(const PublishedTable::Name& name, std::uint64_t version);
  void find(const PublishedTable::Name& name, Waiter waiter);

  const HeadContext& context_;
  std::map<PublishedTable::Name, std::uint64_t> publishing_;  // the largest version under way
  Waiters<PublishedTable::Name, Waiter> waiters_;
};

}  // namespace runtime
