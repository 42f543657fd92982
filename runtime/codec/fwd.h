// Forward declarations of the codec.
#pragma once

#include <memory>

namespace runtime {

class DecodeContext;
class Decoder;
class Encoder;
class Referent;
template <class T>
class ArrayView;
template <class T>
struct Codec;

using DecodeContextPtr = std::shared_ptr<const DecodeContext>;
using ReferentPtr = std::shared_ptr<Referent>;

}  // namespace runtime
