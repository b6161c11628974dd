#!/usr/bin/env bash
# Installs the library into an empty prefix and builds a sample against it, once through find_package and once
# through pkg-config, far away from the source tree's headers.   check_install.sh SOURCE BUILD WORK
set -euo pipefail
source=$1 build=$2 work=$3
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$prefix" >"$work/install.log"

headers=$(cd "$prefix/include" && find . -type f | sort | tr '\n' ' ')
[ "$headers" = "./tilelang.h ./tilelang_expressions.h " ] || { echo "installed headers: $headers"; exit 1; }
library=$(find "$prefix" -name libtilegen.so)
[ -n "$library" ] || { echo "no libtilegen.so under $prefix"; exit 1; }

# The sources of the samples alone, so that no header of the tree is found by accident.
cp -r "$source/samples" "$work/samples"

echo "find_package:"
cmake -G Ninja -S "$work/samples" -B "$work/by_cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log"
cmake --build "$work/by_cmake" --target gemm_bias_relu >"$work/cmake_build.log"
"$work/by_cmake/gemm_bias_relu" 40 50 60 --repeats 1 >"$work/cmake_run.log"
grep ': right$' "$work/cmake_run.log"

echo "pkg-config:"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tilegen.pc)")
parts=(element.c npy.c options.c runner.c gemm_program.c gemm_bias_relu.c)
cd "$work/samples"
# shellcheck disable=SC2046 # the flags are words
${CC:-cc} -std=c99 -pedantic-errors -O1 $(pkg-config --cflags tilegen) "${parts[@]}" \
  $(pkg-config --libs tilegen) -lm -o "$work/by_pkg_config"
LD_LIBRARY_PATH=$(dirname "$library") "$work/by_pkg_config" 40 50 60 --repeats 1 >"$work/pkg_run.log"
grep ': right$' "$work/pkg_run.log"
