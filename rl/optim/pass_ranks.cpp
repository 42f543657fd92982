#include "rl/optim/pass_ranks.h"

#include <utility>

#include "runtime/core/check.h"

namespace rl {

PassRanks::PassRanks(const Communicator& all, TrainingRanks& ranks, const PassSharing& sharing,
                     bool streams)
    : links_(std::move(ranks.team)),
      stage_links_(std::move(ranks.stage)),
      pipeline_links_(std::move(ranks.pipeline)) {
  const int teams = all.size() / links_->size();
  CHECK(all.rank() / teams == links_->rank());
  CHECK(links_->size() == sharing.team());
  if (sharing.stages == 1) {
    team_.emplace(*links_, sharing.cut);
    return;
  }
  CHECK((stage_links_ ? stage_links_->size() : 1) == sharing.ranks);
  CHECK(!stage_links_ || stage_links_->rank() == links_->rank() % sharing.ranks);
  if (stage_links_) stage_.emplace(*stage_links_, sharing.cut);
  team_.emplace(*links_, static_cast<int>(sharing.stages), static_cast<int>(sharing.chunks),
                stage_ ? &*stage_ : nullptr,
                streams && sharing.ranks == 1 ? pipeline_links_.get() : nullptr);
}

// A rank that waits for its team waits.
void PassRanks::add_to(Pulse& pulse) const {
  const auto add = [&pulse](const auto& links) {
    const Pulse with = links.pulse();
    pulse.steps += with.steps;
    if (!with.waiting) return;
    pulse.waiting = true;
    pulse.where = with.where;
  };
  add(*links_);
  if (stage_links_) add(*stage_links_);
  if (!pipeline_links_) return;
  add(*pipeline_links_->stages);
  if (links_->rank() + 1 == links_->size()) return add(*pipeline_links_->losses);
  // A separate thread computes losses: that it waits does not mean that the rank does, and what
  // it computes others wait for.
  pulse.steps += pipeline_links_->losses->pulse().steps;
  if (!pipeline_links_->computes_loss) return;
  pulse.waiting = false;
  pulse.where = "a loss";
}

void PassRanks::abort(const runtime::Status& why) const {
  links_->abort(why);
  if (stage_links_) stage_links_->abort(why);
  if (pipeline_links_) pipeline_links_->abort(why);
}

}  // namespace rl
