// The head's process in the simulation: the production one, with a journal on the simulated disk.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "world.h"

namespace sim {

/// What is recorded, and survives every process.
using JournalDisk = std::map<std::string, std::string>;

/// `argv`: as `starling head` gets it.
void run_head(World& world, JournalDisk& disk, const std::string& token,
              const std::vector<std::string>& argv);

}  // namespace sim
