// PassMemory: the memory in which passes find an arena, and in which ranks exchange it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rl/mesh/range_set.h"
#include "rl/model/parameters.h"

namespace rl {

/// Memory of an arena's elements comes and goes: what was given back can be neither read nor
/// written. Takes and gives are counted. Ranks exchange elements on the host, in host(); where
/// passes compute on a device, elements come down from there and go up again. One thread at a
/// time.
class PassMemory {
 public:
  virtual ~PassMemory() = default;

  virtual void take(const RangeSet& elements) = 0;
  /// The same, and they are zero.
  virtual void take_zeros(const RangeSet& elements) = 0;
  /// What was taken, or was there at the beginning.
  virtual void give_back(const RangeSet& elements) = 0;
  /// Memory that was kept for the next elements goes to the system.
  virtual void release() = 0;

  /// The arena as communicators and optimizers use it.
  virtual std::span<float> host() const = 0;
  /// Elements that are taken can be written in host(), until they are sent up.
  virtual void open_host(const RangeSet& /*elements*/) {}
  /// Passes find what was written there. host() has them no more.
  virtual void send_up(const RangeSet& /*elements*/) {}
  /// host() has what passes find, until it is closed.
  virtual void bring_down(const RangeSet& /*elements*/) {}
  virtual void close_host(const RangeSet& /*elements*/) {}
  /// What is in host() and is read no more: whole pages of it have no memory until they are written
  /// again.
  virtual void forget(const ArenaRange& range) = 0;

  /// The most elements that passes had memory for since reset_most(), whole pages, what was kept
  /// included.
  virtual std::int64_t most() const = 0;
  virtual void reset_most() = 0;
};

/// Of an arena on the CPU, or of one that comes by pages on a device (DeviceArena).
/// `kept_elements`: how many of those that are given back keep their memory until release(), at
/// most.
std::unique_ptr<PassMemory> pass_memory_of(const Parameters& parameters,
                                           std::int64_t kept_elements);

/// Of an arena that stays whole on a device, with a copy on the host.
std::unique_ptr<PassMemory> copied_memory(const Parameters& parameters, const at::Tensor& host);

}  // namespace rl
