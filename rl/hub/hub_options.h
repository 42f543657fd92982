// Sources and destinations of models: Hugging Face's environment variables, so that one setting
// serves its tools and us.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace rl {

/// How far a download is. Files that were there already count as nothing.
struct HubProgress {
  std::string name;  // what is fetched, "org/name"
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

struct HubOptions {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT
  std::string token;  // HF_TOKEN, else the file HF_TOKEN_PATH or HF_HOME/token; empty: none
  std::filesystem::path cache;  // HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub
  bool offline = false;         // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
  std::size_t parallel = 8;     // files at once
  int attempts_max = 5;         // in a row without a new byte
  std::chrono::milliseconds pause{1000};  // before the second attempt; doubles with each
  std::chrono::milliseconds pause_max{
      60'000};                           // a hub that asks for a longer one gets an error instead
  std::chrono::seconds silence_max{30};  // without a byte: the connection counts as broken
  std::chrono::seconds connect_max{10};
  std::function<void(const HubProgress&)>
      progress;  // called now and then, by one thread at a time; may be null

  /// Reads the options from the environment, with the defaults above.
  static HubOptions from_environment();
};

}  // namespace rl
