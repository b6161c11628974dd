#!/bin/sh
# check_no_planner.sh NM PROGRAM: the program lowers, and nothing of a planner is linked to it.
set -e
"$1" -C "$2" > "$2.symbols"
grep -q 'tilegen::lower::lower_kernel' "$2.symbols" || { echo "no lowering among the symbols of $2"; exit 1; }
if grep -E 'tilegen::(schedule|infer|driver)::' "$2.symbols"; then
  echo "the program is linked with a planner"
  exit 1
fi
