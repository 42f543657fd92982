// Data for the benchmarks of training: files and a model that they write.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/support/take.h"
#include "rl/data/toy.h"
#include "rl/worker/toy_model.h"

namespace bench {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

inline constexpr int kRows = 512;
inline constexpr int kSftTokens = 256;

// Our own generator, so that the files are the same everywhere; Park and Miller 1988.
class Draw {
 public:
  int below(int n) {
    return static_cast<int>((state_ = state_ * 16807 % 2147483647) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_ = 7;
};

inline void write_sums(const fs::path& path) {
  std::ofstream out(path);
  Draw draw;
  for (int row = 0; row < kRows; ++row) {
    const int a = draw.below(50), b = draw.below(50);
    const std::string question = "What is " + std::to_string(a) + " + " + std::to_string(b) +
                                 "? Answer with the number only.";
    out << ordered_json{{"data_source", "arithmetic"},
                        {"prompt", {{{"role", "user"}, {"content", question}}}},
                        {"reward_model",
                         {{"style", "rule"}, {"ground_truth", std::to_string(a + b)}}}}
               .dump()
        << "\n";
  }
}

// Sequences that are longer than what is trained on: each fills it.
inline void write_texts(const fs::path& path) {
  static const char* kWords[] = {"river",  "stone",  "light",  "morning", "garden", "window",
                                 "letter", "winter", "market", "bridge",  "silver", "forest",
                                 "music",  "summer", "paper",  "castle"};
  std::ofstream out(path);
  Draw draw;
  for (int row = 0; row < kRows; ++row) {
    std::string text = kWords[draw.below(16)];
    for (int word = 0; word < 2 * kSftTokens; ++word)
      text += std::string(" ") + kWords[draw.below(16)];
    out << ordered_json{{"messages",
                         {{{"role", "user"}, {"content", "Go on."}},
                          {{"role", "assistant"}, {"content", text}}}}}
               .dump()
        << "\n";
  }
}

inline void write_toy(const fs::path& folder) {
  std::ofstream out(folder / "toy.jsonl");
  const rl::Dataset rows = rl::make_toy_dataset(
      {.task = rl::ToyTask::kSort, .rows = kRows, .letters = 16, .length = 15, .seed = 1});
  for (std::int64_t index = 0; index < rows.size(); ++index) {
    const auto row = rows.read(index);
    if (!row.ok()) fail(row.status().to_string());
    out << ordered_json{{"data_source", "toy"},
                        {"prompt", row->prompt},
                        {"reward_model", {{"style", "rule"}, {"ground_truth", row->ground_truth}}}}
               .dump()
        << "\n";
  }
  const auto made = rl::make_toy_model(folder / "toy_model", {.layers = 6,
                                                              .hidden_size = 320,
                                                              .heads = 5,
                                                              .kv_heads = 5,
                                                              .intermediate_size = 864,
                                                              .positions = 64,
                                                              .seed = 1});
  if (!made.ok()) fail(made.to_string());
}

}  // namespace bench
