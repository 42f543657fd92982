// The files of a small run, as a report reads them.
#pragma once

#include <filesystem>
#include <fstream>

namespace rl {

// A run of three steps and a warm start, with the responses of two steps.
inline void write_run(const std::filesystem::path& folder) {
  std::ofstream(folder / "metrics.jsonl")
      << R"({"step":1,"total":2,"epoch":0,"data":{"sft/loss":2.5},"phase":"sft"})"
      << "\n"
      << R"({"step":1,"total":3,"epoch":0,"data":{)"
         R"("critic/score/mean":0.25,"critic/score/max":1,"critic/score/min":0,)"
         R"("actor/pg_loss":null,"timing_s/gen":3,"timing_s/step":4,"my/own":7}})"
      << "\n"
      << R"({"step":2,"total":3,"epoch":0,"data":{)"
         R"("critic/score/mean":0.75,"critic/score/max":1,"critic/score/min":0.5,)"
         R"("actor/pg_loss":0.5,"timing_s/gen":1,"timing_s/update_actor":1,"timing_s/step":2}})"
      << "\n"
      << R"({"step":3,"total":3,"ep)";
  std::ofstream(folder / "config.yaml") << "trainer:\n  note: <b>\n";
  std::filesystem::create_directories(folder / "rollouts");
  std::ofstream(folder / "rollouts" / "1.jsonl")
      << R"({"input":"2+2=","output":"</script>4","gts":"4","score":0.5,)"
         R"("tokens":["</script>","4"],"logprobs":[-0.5,-3],"advantages":[1,-1]})"
      << "\n";
  std::ofstream(folder / "rollouts" / "10.jsonl")
      << R"({"input":"a","output":"later","gts":null,"score":1,"step":10})"
      << "\n";
  std::ofstream(folder / "rollouts" / "notes.jsonl") << "not of the run";
}

}  // namespace rl
