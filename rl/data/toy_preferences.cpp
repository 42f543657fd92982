#include "rl/data/toy_preferences.h"

#include <utility>

#include "rl/data/random.h"

namespace rl {

void add_toy_preferences(std::vector<DataRow>& rows, const ToyOptions& options,
                         PreferenceForm form) {
  SplitMix random(options.seed ^ 0x70726566u);  // another sequence than the prompts'
  bool wanted = true;
  for (DataRow& row : rows) {
    const std::string right = row.ground_truth;
    std::string wrong = right;
    char& letter = wrong[random.below(wrong.size())];
    const auto letters = static_cast<std::uint64_t>(options.letters);
    letter = static_cast<char>(
        'a' + (static_cast<std::uint64_t>(letter - 'a') + 1 + random.below(letters - 1)) % letters);
    Preference preference;
    if (form == PreferenceForm::kPairs) {
      preference.chosen = right;
      preference.rejected = wrong;
    } else {
      preference.chosen = wanted ? right : wrong;
      preference.wanted = std::exchange(wanted, !wanted);
    }
    row.preference = std::move(preference);
    row.response.reset();
  }
}

}  // namespace rl
