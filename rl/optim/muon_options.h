// MuonOptions: the settings of Muon.
#pragma once

namespace rl {

struct MuonOptions {
  float momentum = 0.95F;
  bool nesterov = true;
  int iterations = 5;          // of Newton-Schulz
  bool match_adamw = true;     // updates as large as AdamW's (0.2 in root mean square), so that one
                               // learning rate serves both; else sqrt(max(1, rows / columns))
  float weight_decay = 0.01F;  // of the matrices

  bool operator==(const MuonOptions&) const = default;
};

}  // namespace rl
