#!/usr/bin/env bash
# Runs the samples over shapes, transposes and types; each checks itself against its reference in double.
#   run_samples.sh gemm|rows|attention|files SAMPLES_FOLDER WORK_FOLDER
set -euo pipefail
suite=$1 samples=$2 work=$3
mkdir -p "$work"

# Shows a sample's output only when it fails.
passes() {
  "$@" >"$work/log" 2>&1 || { printf 'failed: %s\n' "$*"; cat "$work/log"; exit 1; }
  grep -q ': right$' "$work/log" || { printf 'did not say "right": %s\n' "$*"; cat "$work/log"; exit 1; }
}
# Must end with the status and mention the text.
refuses() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >"$work/log" 2>&1 || got=$?
  if [ $got -ne "$status" ] || ! grep -q -- "$text" "$work/log"; then
    printf 'status %d, expected %d and "%s": %s\n' $got "$status" "$text" "$*"
    cat "$work/log"
    exit 1
  fi
}

gemm() {
  local shape ta tb dtype
  for shape in "1 1 1" "7 5 3" "130 257 300" "128 256 256" "1 300 65" "200 1 64" "64 64 0" "0 8 8" "8 0 8"; do
    passes "$samples/gemm_bias_relu" $shape --repeats 1
  done
  for ta in "" --transpose-a; do
    for tb in "" --transpose-b; do
      for dtype in f16 bf16 f32 f64 i8; do
        passes "$samples/gemm_bias_relu" 131 67 150 $ta $tb --dtype $dtype --repeats 1
      done
    done
  done
  passes "$samples/gemm_bias_relu" 50 60 70 --dtype f16 --out-dtype f16 --repeats 1
}

rows() {
  local sample shape dtype
  for sample in softmax layernorm; do
    for shape in "1 1" "3 5" "100 16" "65 1000" "33 4096" "2 5001" "0 8"; do
      passes "$samples/$sample" $shape --repeats 1
    done
    for dtype in f16 bf16 f64; do
      passes "$samples/$sample" 20 77 --dtype $dtype --repeats 1
    done
  done
}

attention() {
  local sample=$samples/flash_attention shape dtype dim target
  for shape in "1 1 1 1" "2 3 100 130" "1 1 64 0" "1 2 0 64" "1 1 130 30" "0 1 8 8"; do
    passes "$sample" $shape 64 --target host --repeats 1
    passes "$sample" $shape 64 --causal --group 2 --target host --repeats 1
    passes "$sample" $shape 64 --causal --group 2 --parts 3 --target host --repeats 1
  done
  for dtype in f16 bf16 f32; do
    passes "$sample" 1 2 70 90 80 --dtype $dtype --causal --target host --repeats 1
  done
  for target in sim:sm_80 sim:sm_90a; do
    for dim in 64 128 192; do
      passes "$sample" 1 1 70 150 $dim --causal --group 2 --target $target --repeats 1
    done
    passes "$sample" 1 1 33 70 256 --dtype bf16 --target $target --repeats 1
    passes "$sample" 1 1 33 70 64 --dtype f32 --target $target --repeats 1
    passes "$sample" 1 2 1 700 128 --group 4 --parts 3 --target $target --repeats 1
    passes "$sample" 1 1 5 130 64 --group 2 --causal --parts 5 --target $target --repeats 1
  done
  refuses 2 "heads of 16, 32" "$sample" 1 1 8 8 20
  refuses 2 "heads of 16, 32" "$sample" 1 1 8 8 64 --dtype i8
}

files() {
  local gemm=$samples/gemm_bias_relu inputs
  inputs=(--a "$work/a.npy" --b "$work/b.npy" --bias "$work/bias.npy")
  "$gemm" --make 33 44 55 --dtype f16 --seed 3 "${inputs[@]}"
  passes "$gemm" "${inputs[@]}" --out "$work/c.npy" --repeats 1
  head -c 128 "$work/c.npy" | grep -aq "'descr': '<f4', 'fortran_order': False, 'shape': (33, 44, )"
  [ "$(stat -c %s "$work/c.npy")" -eq $((128 + 33 * 44 * 4)) ]
  refuses 1 "K is given as 5 but the files have 55" "$gemm" 33 44 5 "${inputs[@]}"
  refuses 1 "shapes do not fit" "$gemm" "${inputs[@]}" --transpose-a
  refuses 1 "absent.npy" "$gemm" --a "$work/absent.npy" --b "$work/b.npy" --bias "$work/bias.npy"
  refuses 2 "needed together" "$gemm" --a "$work/a.npy"
  refuses 2 "is no value for --dtype" "$gemm" --dtype f7
  refuses 2 "what is '--speed'" "$gemm" --speed
  refuses 1 "sm_80" "$gemm" 8 8 8 --target nonsense
  refuses 1 "columns; from 1 to 65536" "$samples/softmax" 4 0
  passes "$samples/softmax" --in "$work/a.npy" --out "$work/y.npy"
}

"$suite"
