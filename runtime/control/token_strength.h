// An estimate of a token's entropy.
#pragma once

#include <string_view>

namespace runtime {

/// Required where other machines connect: a recorded handshake allows guesses offline.
inline constexpr double kTokenBitsMin = 80;

/// Bits of entropy, estimated from the text alone: characters within words, runs, sequences and
/// repetitions count less than others.
double estimated_bits(std::string_view token);

}  // namespace runtime
