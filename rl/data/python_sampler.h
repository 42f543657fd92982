// An order of rows that a Python class of the user's makes: verl's data.sampler.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/data/row_order.h"

namespace rl {

/// A class as verl has it: `Class(data_source, data_config)` with __iter__ over row numbers, and
/// perhaps update(batch), which gets each step's samples.
struct PythonSampler {
  std::string path;               // of the file, or pkg://a.b, a module that the interpreter finds
  std::string name;               // of the class
  nlohmann::ordered_json config;  // the section `data`

  bool empty() const { return path.empty(); }

  /// From `data.sampler.class_path` and `class_name`. kInvalidArgument: one without the other.
  static runtime::Result<PythonSampler> from_config(const Config& config);
};

/// Runs the class in its own process, python3 or what STARLING_PYTHON names, until the order is
/// destroyed. `data_source` is a sequence of the rows, as dicts. When __iter__ ends an epoch ends,
/// and it is called again; numbers left over at the end that fill no batch are dropped. A position
/// is the number of epochs and rows. Resuming goes through __iter__ again up to there. A class with
/// state_dict and load_state_dict gets its state of then instead of the calls of update. kNotFound:
/// no such file. kUnavailable: no interpreter. kInvalidArgument: no such class, what it raised
/// (with the traceback's end), a number that is no row's, an epoch that fills no batch.
runtime::Result<std::unique_ptr<RowOrder>> make_python_order(const Dataset& dataset,
                                                             const PythonSampler& sampler);

}  // namespace rl
