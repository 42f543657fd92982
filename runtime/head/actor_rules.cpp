#include "runtime/head/actor_rules.h"

namespace runtime {

bool may_restart(const ClusterTables& tables, const ActorRecord& record) {
  if (record.ending || !(tables.jobs().runs(record.job) || record.spec.outlives_job)) return false;
  if (record.phase == ActorPhase::kStarting && record.restarts == 0)
    return false;  // its creator gets the error instead
  if (record.moving) return record.spec.max_restarts != 0;
  return record.spec.max_restarts < 0 ||
         record.restarts - record.moves < static_cast<std::uint32_t>(record.spec.max_restarts);
}

bool may_move(const ClusterTables& tables, const ActorRecord& record) {
  if (record.ending || record.spec.max_restarts == 0) return false;
  return tables.jobs().runs(record.job) || record.spec.outlives_job;
}

ActorShape shape_of(const ActorSpec& spec) {
  ActorShape shape(spec.class_name, spec.resources, spec.labels, spec.node, spec.node_is_preferred,
                   {});
  if (spec.bundle) std::get<5>(shape) = std::pair(spec.bundle->group, spec.bundle->index);
  return shape;
}

}  // namespace runtime
