// Standard input, output and error of a program, as its main() finds and leaves them.
#pragma once

namespace runtime {

/// First in main(): opens those that are closed on /dev/null, so that no file or socket of the
/// program's own takes their numbers.
void open_standard_streams();

/// Last in main(): the exit code. It is 1 where a success could not be written to standard output
/// (a full disk); standard error then says so.
int finish_standard_output(int exit_code);

}  // namespace runtime
