# Turns the C++ blocks of a page into programs: awk -v page=NAME -v into=FOLDER -f extract.awk PAGE.md
#
# A block with `int main(` in it is a program: NAME_1.cpp, NAME_2.cpp, ... All others become one program, NAME_blocks.cpp; the comment in the
# line above tells how, and further comments hold what a reader need not see:
#   <!-- test: declarations -->         the block stands at namespace scope
#   <!-- test: statements -->           it stands in a function with `Runtime& rt`, one function for each `## ` section;
#                                       a section's code is a separate namespace that uses `runtime`
#   <!-- test: hidden declarations      lines of code at that place, up to `-->`; `hidden main` puts them into main,
#   ... -->                             where actors are registered
# A block with neither is an error, told by a NAME_blocks.cpp that does not compile.

function begin(new_kind) { kind = new_kind; text = "#line " (NR + 1) " \"" FILENAME "\"\n"; is_program = 0 }

function end() {
  if (is_program && kind != "hidden") { programs[++program_count] = text }
  else if (kind == "declarations" || kind == "main" || kind == "statements") {
    if (!((section, "seen") in parts)) order[++section_count] = section
    parts[section, "seen"] = 1
    parts[section, kind] = parts[section, kind] text
  }
  else if (kind != "skip") problem = problem "#error \"" FILENAME ":" start ": say above the block what it is: <!-- test: declarations --> or <!-- test: statements -->\"\n"
  kind = ""; announced = ""
}

BEGIN { section = "the beginning" }

in_fence && /^```/ { end(); in_fence = 0; next }
in_hidden && /^-->/ { is_program = 0; end(); in_hidden = 0; next }
in_fence || in_hidden { text = text $0 "\n"; if (/^int main\(/) is_program = 1; next }

/^## / { section = substr($0, 4) }
/^<!-- test: hidden [a-z]+$/ { start = NR; begin($4); in_hidden = 1; next }
/^<!-- test: [a-z]+ -->$/ { announced = $3; next }
/^```cpp/ { start = NR; begin(announced == "" ? "unmarked" : announced); in_fence = 1; next }
/^```/ { begin("skip"); in_fence = 1; next }

END {
  for (i = 1; i <= program_count; ++i) printf "%s", programs[i] > (into "/" page "_" i ".cpp")
  if (section_count == 0 && problem == "") exit
  file = into "/" page "_blocks.cpp"
  printf "%s", problem > file
  count = split("atomic chrono cstdio map memory optional span string variant vector", headers, " ")
  for (i = 1; i <= count; ++i) print "#include <" headers[i] ">" > file
  print "\n#include \"runtime/runtime.h\"\n\nusing namespace runtime;\nusing namespace std::chrono_literals;" > file
  for (i = 1; i <= section_count; ++i) {
    printf "\nnamespace section_%d {\n%s", i, parts[order[i], "declarations"] > file
    printf "void register_actors([[maybe_unused]] Runtime& rt) {\n%s}\n", parts[order[i], "main"] > file
    printf "Status run([[maybe_unused]] Runtime& rt) {\n%sreturn {};\n}\n}  // namespace section_%d\n", parts[order[i], "statements"], i > file
  }
  print "\nstatic Status driver_main(Runtime& rt) {\n  Status status;" > file
  for (i = 1; i <= section_count; ++i) {
    printf "  std::fprintf(stderr, \"section %s\\n\");\n", order[i] > file
    printf "  if (status = section_%d::run(rt); !status.ok()) return status;\n", i > file
  }
  print "  return status;\n}\n\nint main(int argc, char** argv) {\n  RuntimeOptions options;" > file
  print "  options.start_arguments = {\"--num-cpus\", \"16\"};  // more than a test machine may have\n  Runtime rt(argc, argv, options);" > file
  for (i = 1; i <= section_count; ++i) printf "  section_%d::register_actors(rt);\n", i > file
  print "  return rt.run(driver_main);\n}" > file
}
