#!/bin/sh
# Installs the build into a scratch tree and builds one client from there by pkg-config and one by find_package.
set -eu
build=$1 source=$2 work=$3 cc=$4
rm -rf "$work"
mkdir -p "$work/client"
cmake --install "$build" --component library --prefix "$work/tree" >"$work/install.log"
cp "$source/tests/capi/c_consumer.c" "$source/tests/capi/programs.h" "$work/client/"
cd "$work/client"

PKG_CONFIG_PATH=$(dirname "$(find "$work/tree" -name tilegen.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs tilegen)
libdir=$(pkg-config --variable=libdir tilegen)
# shellcheck disable=SC2086
"$cc" -std=c99 c_consumer.c $flags -lm -o by_pkg_config
LD_LIBRARY_PATH=$libdir ./by_pkg_config

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(client C)
find_package(tilegen 0.1 REQUIRED)
add_executable(by_cmake c_consumer.c)
target_link_libraries(by_cmake PRIVATE tilegen::tilegen m)
END
cmake -G Ninja -S . -B b -DCMAKE_PREFIX_PATH="$work/tree" >"$work/cmake.log"
cmake --build b >>"$work/cmake.log"
./b/by_cmake
