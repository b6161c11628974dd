#!/usr/bin/env bash
# The compiler reads and writes no memory that is not its own.   check_memory.sh TILEGEN FILES
# What it is made of moves while it is built; a reference kept across that is seen by valgrind alone.
set -euo pipefail
tilegen=$1 files=$2
command -v valgrind >/dev/null 2>&1 || { echo "skipped: valgrind is not installed"; exit 77; }

# clean FILE TARGET [OPTIONS...]
clean() {
  local began=$SECONDS
  valgrind --quiet --error-exitcode=9 --child-silent-after-fork=yes "$tilegen" show "$1" --target "${@:2}" --what ptx >/dev/null ||
    { echo "not clean, or refused: $1 for $2"; exit 1; }
  echo "clean: $(basename "$1") for $2, $((SECONDS - began)) s"
}

clean "$files/tool/programs/gemm_odd_rows.tl" sm_90a --schedule "$files/tool/programs/gemm_odd_rows.schedule.json"
clean "$files/files/plan/hopper/gemm_small_misaligned.tl" sm_90a
clean "$files/files/plan/flash_attention.tl" sm_90a
clean "$files/files/plan/flash_attention.tl" sm_80
clean "$files/files/plan/softmax.tl" sm_80
