#include "rl/comm/connect_ranks.h"

#include <string>
#include <utility>

#include "rl/mesh/pass_streaming.h"

namespace rl {

using runtime::Result;

namespace {

// What a stage may have sent while the next one computes: the rows of a pass, 4,096 of 1,024 wide.
constexpr std::size_t kStageRingBytes = std::size_t{16} << 20;

Result<std::unique_ptr<PeerMessages>> connect_messages(
    const std::shared_ptr<Rendezvous>& rendezvous, GlooOptions place) {
  place.ring_bytes = kStageRingBytes;
  auto links = make_gloo_links(rendezvous, place);
  if (!links.ok()) return links.status();
  return std::make_unique<PeerMessages>(std::move(*links));
}

Result<std::unique_ptr<PipelineLinks>> connect_pipeline(
    const std::shared_ptr<Rendezvous>& rendezvous, const GlooOptions& team) {
  auto pipeline = std::make_unique<PipelineLinks>();
  for (auto& [messages, name] :
       {std::pair{&pipeline->stages, "/stages"}, {&pipeline->losses, "/losses"}}) {
    GlooOptions place = team;
    place.group += name;
    auto connected = connect_messages(rendezvous, place);
    if (!connected.ok()) return connected.status();
    *messages = std::move(*connected);
  }
  return pipeline;
}

}  // namespace

Result<TrainingRanks> connect_ranks(const std::shared_ptr<Rendezvous>& rendezvous,
                                    const GlooOptions& place, const PassSharing& sharing,
                                    ZeroLevel zero) {
  if (sharing.ranks < 1 || sharing.stages < 1 || place.size % sharing.team() != 0) {
    return runtime::invalid_argument(std::to_string(sharing.team()) +
                                     " workers that share passes, of " +
                                     std::to_string(place.size));
  }
  TrainingRanks ranks;
  if (place.size == 1) {
    ranks.all = make_single_communicator();
    return ranks;
  }
  auto all = make_gloo_communicator(rendezvous, place);
  if (!all.ok()) return all.status();
  ranks.all = std::move(*all);
  if (sharing.team() == 1) return ranks;
  GlooOptions of_team = place;
  of_team.size = static_cast<int>(sharing.team());
  const int teams = place.size / of_team.size;
  of_team.rank = place.rank / teams;
  of_team.group += "/team" + std::to_string(place.rank % teams);
  auto team = make_gloo_communicator(rendezvous, of_team);
  if (!team.ok()) return team.status();
  ranks.team = std::move(*team);
  if (streams_passes(sharing, zero)) {
    auto pipeline = connect_pipeline(rendezvous, of_team);
    if (!pipeline.ok()) return pipeline.status();
    ranks.pipeline = std::move(*pipeline);
  }
  if (sharing.stages == 1 || sharing.ranks == 1) return ranks;
  GlooOptions of_stage = of_team;
  of_stage.size = static_cast<int>(sharing.ranks);
  of_stage.rank = of_team.rank % of_stage.size;
  of_stage.group += "/stage" + std::to_string(of_team.rank / of_stage.size);
  auto stage = make_gloo_communicator(rendezvous, of_stage);
  if (!stage.ok()) return stage.status();
  ranks.stage = std::move(*stage);
  return ranks;
}

}  // namespace rl
