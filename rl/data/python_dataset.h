// Rows that a Python class of the user's makes: verl's data.custom_cls.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/data/row_source.h"
#include "runtime/core/status.h"

namespace rl {

/// A class as verl has it: `Class(data_files, tokenizer, processor, config, max_samples)` with
/// __len__ and __getitem__, or with __iter__. A row is a dict with messages in `raw_prompt` or
/// `prompt`, and `reward_model`, `data_source`, `extra_info`, ... next to them; tensors are left
/// out.
struct PythonDataset {
  std::string path;  // of the file
  std::string name;  // of the class
  std::string
      model;  // whose tokenizer the class gets, where the interpreter has transformers; else None
  nlohmann::ordered_json
      config;  // the section `data`, as the class reads it: by attribute, by key and with get()

  bool empty() const { return path.empty(); }
};

/// Runs the class in its own process, python3 or what STARLING_PYTHON names, and gives `take`
/// its rows in order, until it returns a failure. What the class prints goes to stderr. kNotFound:
/// no such file; kUnavailable: no interpreter; kInvalidArgument: no such class, or what it raised,
/// with the traceback's end; a row that is no dict.
runtime::Status read_python_rows(const PythonDataset& dataset,
                                 const std::vector<std::string>& files, std::int64_t rows_max,
                                 const std::function<runtime::Status(RawRow)>& take);

}  // namespace rl
