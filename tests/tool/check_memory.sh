#!/usr/bin/env bash
# The compiler reads and writes no memory that is not its own.   check_memory.sh TILEGEN FILES
# What it is made of moves while it is built; a reference kept across that is seen by valgrind alone.
set -euo pipefail
tilegen=$1 files=$2
command -v valgrind >/dev/null 2>&1 || { echo "skipped: valgrind is not installed"; exit 77; }

# clean FORM FILE TARGET [OPTIONS...]
clean() {
  local form=$1
  shift
  local began=$SECONDS
  valgrind --quiet --error-exitcode=9 --child-silent-after-fork=yes "$tilegen" show "$1" --target "${@:2}" --what "$form" >/dev/null ||
    { echo "not clean, or refused: $1 for $2"; exit 1; }
  echo "clean: $(basename "$1") for $2, $((SECONDS - began)) s"
}

# LLVM's part once; of simulated targets all versions of the code are made, and LLVM is left out.
clean ptx "$files/tool/programs/gemm_odd_rows.tl" sm_90a --schedule "$files/tool/programs/gemm_odd_rows.schedule.json"
clean thread "$files/files/plan/hopper/gemm_small_misaligned.tl" sim:sm_90a
clean thread "$files/files/plan/flash_attention.tl" sim:sm_90a
clean thread "$files/files/plan/flash_attention.tl" sim:sm_80
clean thread "$files/files/plan/softmax.tl" sim:sm_80
