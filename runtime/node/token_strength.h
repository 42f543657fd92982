// How hard a token is to guess.
#pragma once

#include <string_view>

namespace runtime {

/// A token that strangers may try to guess away from the cluster, at any speed, has at least so
/// many bits.
inline constexpr double kTokenBitsMin = 80;

/// Bits of entropy, estimated from the text alone and rather too few than too many: characters that
/// go on with a word, a run, a sequence or something said before count less than others.
double estimated_bits(std::string_view token);

}  // namespace runtime
