// `starling doctor`.
#pragma once

#include <cstdint>
#include <string>

namespace placement {

struct DoctorOptions {
  std::string address;
  bool cluster = false;
  std::uint64_t bytes = 64 << 20;  // that are sent over each connection, and reduced
  bool json = false;
};

/// Returns the exit code: 1 when something failed.
int doctor_command(const DoctorOptions& options);

}  // namespace placement
