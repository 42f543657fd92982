#include "rl/actor/actor_setup.h"

#include "rl/comm/gloo_communicator.h"
#include "rl/comm/runtime_rendezvous.h"
#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/model/model_config.h"
#include "rl/worker/team_keys.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// watch_group() gives a rank up that holds the others up; one that computes is waited for.
constexpr std::chrono::hours kWatched{24};

// What a stage may have sent while the next one computes: the rows of a pass, 4,096 of 1,024 wide.
constexpr std::size_t kStageRingBytes = std::size_t{16} << 20;

}  // namespace

Result<Config> parse_config(const WorkerSpec& spec) {
  Result<Config> config = Config::deserialize(spec.config);
  if (!spec.device.empty()) end_process_with_its_device();
  if (!config.ok() || !spec.device.starts_with("cuda")) return config;
  const Result<std::string> precision = config->get_string("trainer.float32_matmul_precision");
  if (!precision.ok()) return precision.status();
  set_matmul_precision(*precision);
  return config;
}

Status check_team(const Config& config, const std::string& role, const WorkerSpec& spec) {
  const Result<PassSharing> sharing = pass_sharing_from_config(config, role);
  if (!sharing.ok() || sharing->team() == 1) return sharing.status();
  const Result<ModelConfig> model = ModelConfig::load(spec.model);
  return model.ok() ? check_pass_sharing(config, role, *model, spec.size) : model.status();
}

Result<TrainingRanks> join_group(runtime::Runtime& runtime, const WorkerSpec& spec,
                                 const PassSharing& sharing) {
  if (sharing.ranks < 1 || sharing.stages < 1 || spec.size % sharing.team() != 0) {
    return runtime::invalid_argument(std::to_string(sharing.team()) +
                                     " workers that share passes, of " + std::to_string(spec.size));
  }
  TrainingRanks ranks;
  if (spec.size == 1) {
    ranks.all = make_single_communicator();
    return ranks;
  }
  const Result<std::string> host = node_host(runtime);
  if (!host.ok()) return host.status();
  const auto options = [&](int rank, int size, const std::string& group) {
    return GlooOptions{
        .rank = rank, .size = size, .group = group, .host = *host, .exchange_deadline = kWatched};
  };
  const auto join = [&](int rank, int size, const std::string& group) {
    return make_gloo_communicator(make_runtime_rendezvous(runtime), options(rank, size, group));
  };
  auto all = join(spec.rank, spec.size, spec.group);
  if (!all.ok()) return all.status();
  ranks.all = std::move(*all);
  if (sharing.team() == 1) return ranks;
  const int teams = spec.size / static_cast<int>(sharing.team());
  const int position = spec.rank / teams;
  const std::string name = spec.group + "/team" + std::to_string(spec.rank % teams);
  auto team = join(position, static_cast<int>(sharing.team()), name);
  if (!team.ok()) return team.status();
  ranks.team = std::move(*team);
  if (sharing.stages == 1) return ranks;
  if (sharing.ranks == 1) {
    auto links = std::make_unique<PipelineLinks>();
    for (auto& [messages, of] : {std::pair{&links->stages, "stages"}, {&links->losses, "losses"}}) {
      GlooOptions how = options(position, static_cast<int>(sharing.team()), name + "/" + of);
      how.ring_bytes = kStageRingBytes;
      auto made = make_gloo_links(make_runtime_rendezvous(runtime), how);
      if (!made.ok()) return made.status();
      *messages = std::make_unique<PeerMessages>(std::move(*made));
    }
    ranks.pipeline = std::move(links);
    return ranks;
  }
  const auto stage_ranks = static_cast<int>(sharing.ranks);
  auto stage = join(position % stage_ranks, stage_ranks,
                    name + "/stage" + std::to_string(position / stage_ranks));
  if (!stage.ok()) return stage.status();
  ranks.stage = std::move(*stage);
  return ranks;
}

Result<std::unique_ptr<Communicator>> join_frozen(runtime::Runtime& runtime, const WorkerSpec& spec,
                                                  const FrozenSharding& sharding) {
  if (!sharding.shards || spec.size == 1) return std::unique_ptr<Communicator>();
  Result<TrainingRanks> ranks = join_group(runtime, spec, PassSharing());
  if (!ranks.ok()) return ranks.status();
  return std::move(ranks->all);
}

void place_adapter(const WorkerSpec& spec, std::optional<AdapterOptions>& adapter) {
  if (!adapter) return;
  adapter->folder = spec.adapter;
  adapter->lora.base_model = spec.model_name;
}

Result<std::vector<std::string>> as_text(const Result<std::vector<std::filesystem::path>>& files) {
  if (!files.ok()) return files.status();
  return std::vector<std::string>(files->begin(), files->end());
}

}  // namespace rl
