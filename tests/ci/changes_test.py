"""What CI looks at of a change: source files for clang, test programs for the sanitizers."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".ci"))

import changes
import check_change
import sanitize_change

FILES = {
    "runtime/schema/call.capnp": "",
    "runtime/call/wire.h": '#include "runtime/schema/call.capnp.h"\n',
    "runtime/call/wire.cpp": '#include "runtime/call/wire.h"\n',
    "runtime/runtime.h": "",
    "runtime/runtime.cpp": '#include "runtime/runtime.h"\n',
    "rl/config/keys.inc": "",
    "rl/config/keys.cpp": '#include "rl/config/keys.inc"\n',
    "rl/config/print.cpp": '#include "rl/config/keys.inc"\n',
    "rl/config/list.cpp": '#include "rl/config/keys.inc"\n',
    "rl/data/arrow/reader.cpp": "",
    "rl/cuda/kernels.cu": "",
    "tests/runtime/call/wire_test.cpp": '#include "runtime/call/wire.h"\n',
    "tests/runtime/call/harness.h": "",
    "tests/runtime/node/node_test.cpp": '#include "runtime/runtime.h"\n#include "fixture.h"\n',
    "tests/runtime/node/fixture.h": 'const char* program = "/starling";\n',
    "tests/runtime/long/long_test.cpp": '#include "tests/support/gate.h"\n',
    "tests/runtime/long/labels.txt": "slow\n",
    "tests/runtime/long/uses.txt": "tests/runtime/node\n",
    "tests/rl/data/reader_test.cpp": '#include "tests/support/gate.h"\n',
    "tests/rl/data/library_test.cpp": 'load("libstarling_arrow.so");\n',
    "tests/support/gate.h": "",
    "tests/support/fake_nccl.cpp": "",
    "tests/rl/cuda/nccl_test.cpp": 'load("fake_nccl.so");\n',
    "tests/fuzz/wire_fuzz.cpp": '#include "runtime/call/wire.h"\n',
    "tests/fuzz/driver/replay.cpp": "",
    "examples/echo.cpp": "",
}


@unittest.skipUnless(shutil.which("git"), "there is no git")
class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.root)
        subprocess.run(["git", "init", "-q"], check=True)
        self.includes = changes.Includes(self.root)


class SourcesForClang(Tree):
    def setUp(self):
        super().setUp()
        self.known = {name: [] for name in FILES if name.endswith(".cpp")}

    def sources(self, *changed):
        return check_change.sources_for(list(changed), self.known, self.includes)

    def test_a_header_is_checked_by_its_source(self):
        self.assertEqual(self.sources("runtime/call/wire.h"), (["runtime/call/wire.cpp"], []))

    def test_a_schema_is_checked_through_the_header_that_includes_it(self):
        files, unchecked = self.sources("runtime/schema/call.capnp")
        self.assertIn("runtime/call/wire.cpp", files)
        self.assertEqual((len(files), unchecked), (check_change.INCLUDERS, []))

    def test_all_users_of_a_list_of_keys_are_checked(self):
        self.assertEqual(len(self.sources("rl/config/keys.inc")[0]), 3)

    def test_what_no_source_has_is_named(self):
        self.assertEqual(self.sources("rl/cuda/kernels.cu", "tests/support/none.h"),
                         ([], ["rl/cuda/kernels.cu", "tests/support/none.h"]))


class ProgramsForSanitizers(Tree):
    def setUp(self):
        super().setUp()
        files = changes.files_of(self.root, "tests/*.cpp", "tests/*.h")
        self.programs = sanitize_change.programs_of(self.root, files)
        self.concerned = sanitize_change.Concerned(self.root, self.programs, self.includes)

    def by(self, file):
        return sorted(self.concerned.by(file))

    def test_a_source_concerns_the_tests_of_its_folder_or_the_nearest_above(self):
        self.assertEqual(self.by("runtime/call/wire.cpp"), ["test_runtime_call"])
        self.assertEqual(self.by("rl/data/arrow/reader.cpp"), ["test_rl_data"])

    def test_what_lies_in_a_layers_folder_concerns_those_that_include_it(self):
        self.assertEqual(self.by("runtime/runtime.cpp"), ["test_runtime_node"])

    def test_a_schema_concerns_the_tests_of_the_folders_that_include_it(self):
        self.assertEqual(self.by("runtime/schema/call.capnp"), ["test_runtime_call"])

    def test_a_file_of_tests_concerns_the_programs_that_have_it(self):
        self.assertEqual(self.by("tests/runtime/call/harness.h"), ["test_runtime_call"])
        self.assertEqual(self.by("tests/runtime/node/fixture.h"),
                         ["test_runtime_long", "test_runtime_node"])
        self.assertEqual(self.by("tests/support/gate.h"), ["test_rl_data", "test_runtime_long"])
        self.assertEqual(self.by("tests/support/fake_nccl.cpp"), ["test_rl_cuda"])
        self.assertEqual(self.by("tests/fuzz/wire_fuzz.cpp"), ["wire_fuzz"])

    def test_some_files_concern_none(self):
        self.assertEqual(self.by("examples/echo.cpp"), [])
        self.assertEqual(self.by("rl/cuda/kernels.cu"), [])

    def test_slow_programs_are_known_by_their_label(self):
        self.assertEqual([name for name, it in self.programs.items() if it.slow],
                         ["test_runtime_long"])

    def test_programs_that_tests_start_or_load_are_built_too(self):
        helpers = {name: it.helpers(self.root, self.includes) for name, it in self.programs.items()}
        self.assertEqual(helpers["test_runtime_node"], ["starling"])
        self.assertEqual(helpers["test_rl_data"], ["starling_arrow"])
        self.assertEqual(helpers["test_rl_cuda"], ["fake_nccl"])
        self.assertEqual(helpers["test_runtime_call"], [])


if __name__ == "__main__":
    unittest.main()
