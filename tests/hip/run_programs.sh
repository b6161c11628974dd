#!/usr/bin/env bash
# Every program of a folder on a HIP device by the command line tool: compiled, loaded, launched, and compared with the
# interpreter of programs. Without FAKE_HIP on the machine's first one; on that stand-in for the runtime the two
# architectures take turns.   run_programs.sh TILEGEN PROGRAMS [FAKE_HIP]
set -euo pipefail
tilegen=$1 programs=$2
if [ $# -gt 2 ]; then export TILEGEN_HIP_RUNTIME=$3; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

architectures=(gfx942 gfx90a)
count=0
for program in "$programs"/*.tl; do
  given=()
  # A size that fills no tile where the program's facts allow it.
  while read -r name facts; do
    divisor=$(sed -nE 's/.*divisible ([0-9]+).*/\1/p' <<<"$facts") most=$(sed -nE 's/.*<= ([0-9]+).*/\1/p' <<<"$facts")
    size=$(((70 + ${divisor:-1} - 1) / ${divisor:-1} * ${divisor:-1}))
    [ -n "$most" ] && [ "$size" -gt "$most" ] && size=$most
    given+=("--$name" "$size")
  done < <(sed -nE 's/^dim ([A-Za-z_0-9]+)(.*)/\1 \2/p' "$program")
  while read -r name; do given+=("--$name" 1); done < <(sed -nE 's/^scalar ([A-Za-z_0-9]+):.*/\1/p' "$program")
  # Sums that cancel differ by more than the tool allows for f32 by itself.
  grep '^tensor' "$program" | grep -v readonly | grep -qE 'f16|e4m3|e5m2' || given+=(--tolerance 1e-4)
  architecture=${architectures[count % 2]}
  count=$((count + 1))
  if ! TILEGEN_FAKE_HIP=architecture=$architecture "$tilegen" run "$program" --target hip --repeats 1 \
      "${given[@]}" >"$log" 2>&1 || ! grep -q '  *right ' "$log" || grep -q WRONG "$log"; then
    printf '%s %s%s\n' "$program" "${given[*]}" "${3+ on $architecture}"
    cat "$log"
    exit 1
  fi
done
[ "$count" -gt 10 ] || { echo "only $count programs in $programs"; exit 1; }
echo "$count programs are right"
