#include "rl/actor/actor_setup.h"

#include "rl/comm/connect_ranks.h"
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
                                 const PassSharing& sharing, ZeroLevel zero) {
  GlooOptions place{.rank = spec.rank,
                    .size = spec.size,
                    .group = spec.group,
                    .host = {},
                    .exchange_deadline = kWatched};
  if (spec.size > 1) {
    const Result<std::string> host = node_host(runtime);
    if (!host.ok()) return host.status();
    place.host = *host;
  }
  return connect_ranks(make_runtime_rendezvous(runtime), place, sharing, zero);
}

Result<std::unique_ptr<Communicator>> join_frozen(runtime::Runtime& runtime, const WorkerSpec& spec,
                                                  const FrozenSharding& sharding) {
  if (!sharding.shards || spec.size == 1) return std::unique_ptr<Communicator>();
  Result<TrainingRanks> ranks = join_group(runtime, spec, PassSharing(), ZeroLevel::kNone);
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
