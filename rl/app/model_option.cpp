#include "rl/app/model_option.h"

#include <algorithm>

#include "rl/app/progress_line.h"

namespace rl {

CLI::Option* ModelOption::add_to(CLI::App& app, const std::string& what, CLI::App* group) {
  CLI::Option* option =
      (group != nullptr ? *group : app)
          .add_option("--model", model, what + ", or [org/]name[@revision] on the hub");
  app.add_option("--revision", revision,
                 "branch, tag or commit of a model on the hub (default: main)")
      ->needs(option);
  return option;
}

runtime::Result<std::filesystem::path> ModelOption::locate(HubNeed need) const {
  return locate_with_progress(model, revision, need);
}

runtime::Result<std::filesystem::path> locate_with_progress(const std::string& model,
                                                            const std::string& revision,
                                                            HubNeed need) {
  ProgressLine line;
  HubOptions options = HubOptions::from_environment();
  options.progress = [&line](const HubProgress& progress) {
    const double rate = static_cast<double>(progress.bytes_done) / std::max(line.seconds(), 1e-3);
    line.show("fetching " + progress.name + ": " + std::to_string(progress.bytes_done >> 20) +
              " of " + std::to_string(progress.bytes_total >> 20) + " MiB, " +
              std::to_string(static_cast<std::int64_t>(rate) >> 20) + " MiB/s");
  };
  return locate_model(model, revision, need, options);
}

}  // namespace rl
