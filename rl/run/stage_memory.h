// The memory that a stage's workers will take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rl/actor/worker_slots.h"
#include "rl/feed/row_lengths.h"
#include "rl/plan/memory_plan.h"
#include "rl/run/data_stage.h"
#include "rl/run/zero_choice.h"
#include "runtime/core/result.h"

namespace rl {

/// Of an opened stage whose rows have these lengths. Reads the config.json of its models. Errors: a
/// model that is not here, an adapter that does not fit.
runtime::Result<RoleMemory> stage_memory(const StageSetup& setup, const DataStage& stage,
                                         const RowLengths& rows);
/// With rows of data.max_length tokens.
runtime::Result<RoleMemory> stage_memory(const StageSetup& setup, const DataStage& stage);

/// That not all rows count; nothing: they do.
std::optional<std::string> unseen_rows_note(const RowLengths& rows);

/// Whether that fits: check_memory_fits() of some nodes.
using FitsNodes = std::function<runtime::Status(const RoleMemory& role)>;
/// By the rows that were seen: what fits with those is not refused. Where it would not with rows of
/// data.max_length, `note` has the figures.
runtime::Status judge_stage_fit(const StageSetup& setup, const DataStage& stage,
                                const FitsNodes& fits, std::optional<std::string>& note);

/// Where engine.zero_level is auto, puts the level that it takes to fit into the setup. Rows as
/// long as may be have to fit, or else short ones. Where no level fits, the setup stays as it was.
/// Returns what was chosen.
ZeroChoice settle_stage_zero(StageSetup& setup, const DataStage& stage, const SlotOptions& slots,
                             const FitsNodes& fits);

}  // namespace rl
