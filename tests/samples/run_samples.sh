#!/usr/bin/env bash
# Runs the samples over shapes, transposes and types; each checks itself against its reference in double.
#   run_samples.sh gemm|rows|attention|attention_forms|files SAMPLES_FOLDER WORK_FOLDER
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

# Both products of attention are those of warpgroups, and its four tensors go through the copy engine.
planned_for_warpgroups() {
  passes "$@" --target sim:sm_90a --repeats 1
  if [ "$(grep -c ' warpgroup_mma ' "$work/log")" -ne 2 ] || [ "$(grep -c ' tensor_copy ' "$work/log")" -ne 4 ]; then
    printf 'planned otherwise: %s\n' "$*"
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
  local sample shape dtype target
  for sample in softmax layernorm rmsnorm; do
    for shape in "1 1" "3 5" "100 16" "65 1000" "33 4096" "2 5001" "0 8"; do
      passes "$samples/$sample" $shape --target host --repeats 1
    done
    for dtype in f16 bf16 f64; do
      passes "$samples/$sample" 20 77 --dtype $dtype --target host --repeats 1
    done
  done
  for shape in "1 1 2" "7 3 10" "33 8 64" "5 1 5002" "3 40 128" "0 1 2"; do
    for dtype in f16 bf16 f32 f64; do
      passes "$samples/rotary" $shape --dtype $dtype --target host --repeats 1
    done
  done
  for target in sim:sm_80 sim:sm_90a; do
    for sample in softmax layernorm rmsnorm; do
      passes "$samples/$sample" 13 100 --target $target --repeats 1
      passes "$samples/$sample" 3 1032 --dtype f16 --target $target --repeats 1
    done
    passes "$samples/rotary" 11 3 10 --target $target --repeats 1
    passes "$samples/rotary" 5 4 128 --dtype f16 --target $target --repeats 1
    passes "$samples/rotary" 3 2 64 --dtype f64 --target $target --repeats 1
  done
  refuses 1 "of an even number" "$samples/rotary" 4 2 5
  refuses 1 "columns; from 1 to 65536" "$samples/rotary" 4 0 8
  refuses 1 "columns; from 1 to 65536" "$samples/rmsnorm" 4 65537
  refuses 2 "needs a floating type" "$samples/rotary" --dtype i8
}

attention() {
  local sample=$samples/flash_attention shape dtype dim target
  for shape in "1 1 1 1" "2 3 100 130" "1 1 64 0" "1 2 0 64" "1 1 130 30" "0 1 8 8"; do
    passes "$sample" $shape 64 --target host --repeats 1
    passes "$sample" $shape 64 --causal --group 2 --target host --repeats 1
    passes "$sample" $shape 64 --causal --group 2 --parts 3 --target host --repeats 1
    passes "$sample" $shape 64 --left 20 --right 3 --row-sums --heads-last --target host --repeats 1
    passes "$sample" $shape 64 --left 20 --cap 0.3 --row-sums --parts 2 --target host --repeats 1
    passes "$sample" $shape 64 --causal --packed --row-sums --target host --repeats 1
  done
  for dtype in f16 bf16 f32; do
    passes "$sample" 1 2 70 90 80 --dtype $dtype --causal --target host --repeats 1
    passes "$sample" 1 1 70 90 80 --dtype $dtype --left 9 --right 4 --cap 0.3 --row-sums --target host --repeats 1
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

# Masks, caps, row sums, orders in memory and packed sequences, alone and together.
attention_forms() {
  local sample=$samples/flash_attention target seed flags
  for target in host sim:sm_80 sim:sm_90a; do
    form() { passes "$sample" "$@" --target $target --repeats 1; }
    form 1 1 300 330 64 --left 100
    form 1 1 150 300 64 --right 20 --row-sums
    form 2 1 150 290 64 --left 40 --right 9 --row-sums --group 2
    form 1 1 150 70 64 --left 0 --causal --row-sums
    form 1 1 70 150 64 --cap 0.3 --row-sums
    form 1 1 140 150 128 --cap 2 --causal --row-sums --dtype bf16
    form 1 1 20 70 32 --cap 0.3 --left 30 --row-sums --dtype f32
    form 2 2 140 150 64 --heads-last --group 2
    form 2 1 70 270 80 --heads-last --left 70 --causal --cap 2 --row-sums
    for seed in 1 2 3; do
      form 5 1 150 170 64 --packed --seed $seed
      form 5 2 150 170 64 --packed --causal --row-sums --seed $seed
    done
    form 4 1 300 300 64 --packed --left 50 --right 20 --cap 1 --row-sums --group 2
    form 2 1 100 100 128 --packed --left 50 --dtype bf16
    form 1 2 5 700 64 --parts 3 --left 300 --causal --group 4 --row-sums
    form 2 2 5 300 64 --parts 4 --left 140 --right 2 --cap 0.3 --row-sums --heads-last
    form 1 1 5 3 64 --parts 3 --causal --row-sums
  done
  for flags in "" --heads-last "--left 40 --right 9 --cap 2 --row-sums" "--packed --causal" "--parts 3"; do
    planned_for_warpgroups "$sample" 1 2 3 5 128 $flags
  done
  refuses 2 "does not go with --packed" "$sample" 1 1 8 8 64 --packed --parts 2
  refuses 2 "wants --group 1" "$sample" 1 1 8 8 64 --heads-last --parts 2 --group 2
  refuses 2 "its heads last already" "$sample" 1 1 8 8 64 --heads-last --packed
  refuses 2 "leave one of them out" "$sample" 1 1 8 8 64 --causal --right 3
  refuses 2 "windows of" "$sample" 1 1 8 8 64 --left 9000000000000000000
  refuses 2 "from 1e-30 to 1e30" "$sample" 1 1 8 8 64 --cap -1
  refuses 2 "from 1e-30 to 1e30" "$sample" 1 1 8 8 64 --cap nan
  refuses 2 "in 32 bits" "$sample" 4 1 8 1000000000 64 --packed
  refuses 2 "is no value for --left" "$sample" 1 1 8 8 64 --left -1
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
  passes "$samples/rmsnorm" --in "$work/a.npy" --out "$work/y.npy"
  [ "$(stat -c %s "$work/y.npy")" -eq "$(stat -c %s "$work/a.npy")" ]
  refuses 1 "a tensor of rows, heads" "$samples/rotary" --in "$work/a.npy"
}

"$suite"
