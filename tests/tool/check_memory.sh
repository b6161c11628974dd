#!/usr/bin/env bash
# The compiler reads and writes no memory that is not its own.   check_memory.sh TILEGEN COMPILE_PROGRAMS FILES
# What it is made of moves while it is built; a reference kept across that is seen by valgrind alone.
set -euo pipefail
tilegen=$1 compile_programs=$2 files=$3
command -v valgrind >/dev/null 2>&1 || { echo "skipped: valgrind is not installed"; exit 77; }

# clean WHAT COMMAND...
clean() {
  local what=$1 began=$SECONDS
  valgrind --quiet --error-exitcode=9 --child-silent-after-fork=yes "${@:2}" >/dev/null || { echo "not clean, or refused: $what"; exit 1; }
  echo "clean: $what, $((SECONDS - began)) s"
}

# LLVM's part once. Of simulated targets all versions of the code are made, and LLVM is left out: in one process, as valgrind
# spends most of its time on code that it has not met.
clean "gemm_odd_rows.tl for sm_90a" "$tilegen" show "$files/tool/programs/gemm_odd_rows.tl" --target sm_90a --what ptx \
  --schedule "$files/tool/programs/gemm_odd_rows.schedule.json"
clean "programs for simulated targets" "$compile_programs" "$files/files/plan/hopper/gemm_small_misaligned.tl" sim:sm_90a \
  "$files/files/plan/flash_attention.tl" sim:sm_90a "$files/files/plan/flash_attention.tl" sim:sm_80 \
  "$files/files/plan/softmax.tl" sim:sm_80
