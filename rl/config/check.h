// The meaning of each key of a command line, without running anything: the output of `starling
// train --check`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/config/judge.h"
#include "rl/config/keys.h"

namespace rl {

/// One key that was set, or one override that says nothing understandable.
struct KeyCheck {
  std::string written;           // as the user named it
  std::string key;               // its name here
  nlohmann::ordered_json value;  // references resolved; of a repeated key the last one
  std::string origin;            // "the command line", "run.yaml:12"
  Judgement::Verdict verdict = Judgement::Verdict::kUsed;
  std::string meaning;  // what it does, why it has no effect, or what is wrong with it
};

struct ConfigCheck {
  std::vector<KeyCheck> keys;
  std::vector<std::string> notes;  // what is chosen where a script leaves it open

  std::size_t count(Judgement::Verdict verdict) const;
  /// Whether a run would take every key by itself.
  bool passes() const;
};

/// Judges each key by itself: what they mean together is for the run to say. Errors: a file that
/// cannot be read.
runtime::Result<ConfigCheck> check_config(const ConfigSources& sources);

/// What a key does that is used: its description, or that its value is what is done here anyway.
std::string meaning_of(const KeyInfo& info, const KeyTable& keys = train_keys());

/// For a person: refused keys first, then those without effect, then those that are used; a summary
/// last.
std::string to_text(const ConfigCheck& check);
nlohmann::ordered_json to_json(const ConfigCheck& check);

}  // namespace rl
