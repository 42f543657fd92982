#include "rl/app/report.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <string>

#include "rl/app/command_line.h"
#include "rl/report/report.h"
#include "rl/weights/atomic_file.h"

namespace rl {

int report_command(int argc, char** argv) {
  CLI::App app("Writes one HTML page about a training run: curves, times, rewards, responses.",
               "starling report");
  app.footer(
      "Example:\n  starling train ... trainer.logger=[console,file] trainer.default_local_dir=RUN "
      "trainer.rollout_data_dir=RUN/rollouts\n  starling report RUN --out run.html");
  std::string run, rollouts, out;
  ReportOptions options;
  app.add_option("run", run, "the run's folder (trainer.default_local_dir)")
      ->required()
      ->type_name("RUN");
  app.add_option("--out", out, "where the page goes (default: RUN/report.html)")->type_name("FILE");
  app.add_option("--rollouts", rollouts,
                 "the run's trainer.rollout_data_dir (default: RUN/rollouts)")
      ->type_name("FOLDER");
  app.add_option("--step", options.sample_steps,
                 "a step whose responses are shown (repeatable; default: the first kept, the "
                 "middle one, the last)")
      ->type_name("N");
  app.add_option("--samples", options.samples_per_step, "responses of each of them")
      ->check(whole_number_from(1))
      ->capture_default_str();
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const std::filesystem::path folder(run);
  const auto log =
      read_run(folder, rollouts.empty() ? folder / "rollouts" : std::filesystem::path(rollouts));
  if (!log.ok()) return fail(log.status());
  const auto page = report_html(*log, options);
  if (!page.ok()) return fail(page.status());
  const std::filesystem::path file =
      out.empty() ? folder / "report.html" : std::filesystem::path(out);
  if (const runtime::Status status = write_file_atomically(file, *page); !status.ok())
    return fail(status);
  std::cout << file.string() << "\n";
  return 0;
}

}  // namespace rl
