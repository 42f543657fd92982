// The Python programs that read data: the .py files of this folder.
#pragma once

namespace rl {

/// What every program of PythonChild begins with. `told` is a file to write answers to.
/// plain(value) is what JSON has a form for. config_of(tree) is a configuration as classes expect
/// it. load_class(path, name) loads from a file or from pkg://a.b. reasons(error) is the text for
/// an exception.
extern const char* const kPythonPrelude;

/// Writes the rows of a dataset class, one a line; the last line is {"end": true}, or
/// {"error": ...}. Behind kPythonPrelude.
extern const char* const kDatasetProgram;

/// A sampler class: the rows come first, one a line, then requests, each with one answer. Behind
/// kPythonPrelude.
extern const char* const kSamplerProgram;

}  // namespace rl
