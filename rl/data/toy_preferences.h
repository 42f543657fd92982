// Preferences for the built-in toy tasks.
#pragma once

#include <vector>

#include "rl/data/preference_mapping.h"
#include "rl/data/toy.h"

namespace rl {

/// Gives rows of make_toy_dataset() their preference: the right answer is chosen, one with a wrong
/// letter rejected. As single responses every other row has the right answer, which is wanted. A
/// function of the options and the rows alone.
void add_toy_preferences(std::vector<DataRow>& rows, const ToyOptions& options,
                         PreferenceForm form);

}  // namespace rl
