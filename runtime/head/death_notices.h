// DeathNotices: the news for the nodes that actors are dead for good.
#pragma once

#include <map>
#include <vector>

#include "runtime/head/head_context.h"

namespace runtime {

class DeathNotices {
 public:
  explicit DeathNotices(const HeadContext& context) : context_(context) {}
  DeathNotices(const DeathNotices&) = delete;
  DeathNotices& operator=(const DeathNotices&) = delete;

  /// Gathers the deaths of its lifetime, so that a thousand of them are one event for every node.
  class Together {
   public:
    explicit Together(DeathNotices& notices);
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;
    ~Together();
    void add(const ActorRecord& record) { dead_[record.job].push_back(record.spec.actor); }

   private:
    DeathNotices& notices_;
    Together* const outer_;
    std::map<JobId, std::vector<ActorId>> dead_;
  };

  /// The processes of its job get to know; those of one Together at its end.
  void announce(const ActorRecord& record);

 private:
  const HeadContext& context_;
  Together* innermost_ = nullptr;
};

}  // namespace runtime
