#!/usr/bin/env bash
# Installs the component `runtime` to a prefix, moves the prefix, and builds and runs a project outside this tree against it.
set -euo pipefail
source_dir=${1:?source folder} build_dir=${2:?build folder} version=${3:?version}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "error: $*" >&2; exit 1; }

cmake --install "$build_dir" --component runtime --prefix "$folder/first" >"$folder/install.log"
prefix=$folder/prefix
mv "$folder/first" "$prefix"  # a package that remembers where it was installed fails from here on

found=$(find "$prefix" -name '*torch*' -o -name 'starling-rl')
[ -z "$found" ] || fail "the runtime's component brings $found"
text=("$prefix/include" "$prefix/lib/cmake")
for path in "$source_dir" "$build_dir" "$folder"; do
  found=$(grep -rF "$path" "${text[@]}" || true)
  [ -z "$found" ] || fail "a path of this machine was installed: $found"
done
found=$(find "$prefix/include" -name '*.capnp*')
[ -z "$found" ] || fail "generated headers were installed, and no public header needs them: $found"

sections=$(readelf -S -W "$prefix/bin/starling")
if [[ $sections == *.debug_info* ]]; then fail "the program has its debug information in it"; fi
[[ $sections == *.gnu_debuglink* ]] || fail "the program does not name the file of its debug information"
debug=$prefix/bin/.debug/starling.debug
[ -f "$debug" ] || fail "the program's debug information was not installed"
[[ $(readelf -S -W "$debug" 2>/dev/null) == *.debug_info* ]] || fail "$debug has no debug information"

said=$("$prefix/bin/starling" --version)
[ "$said" = "starling $version" ] || fail "the program says '$said', the project is $version"

cp -r "$source_dir/tests/install/project" "$folder/project"
configure() { cmake -G Ninja -S "$folder/project" -B "$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release -DWANTED_VERSION="$2"; }
if configure "$folder/too_new" 99.0 >"$folder/too_new.log" 2>&1; then fail "find_package(Starling 99.0) was content with $version"; fi
grep -q "requested version \"99.0\"" "$folder/too_new.log" || { cat "$folder/too_new.log"; fail "not refused for its version"; }
configure "$folder/build" "$version" >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log"; fail "the project did not configure"; }
cmake --build "$folder/build" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; fail "the project did not build"; }

mkdir "$folder/sessions"
run() { env -u STARLING_ADDRESS PATH="$prefix/bin:$PATH" STARLING_SESSION_ROOT="$folder/sessions/s" timeout 60 "$folder/build/$1"; }
said=$(run app)
[ "$said" = "release $version sums 524288 524288" ] || fail "the driver said '$said'"
said=$(run plan)
[ "$said" = "bundles on the first node: 2" ] || fail "the plan said '$said'"
