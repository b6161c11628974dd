#!/usr/bin/env bash
# tilegen tune --measure and measure from the outside: on the host, on the fake driver, and what faults, hangs or is
# remembered.   check_tune.sh TILEGEN WORK FAKE_CUDA
set -euo pipefail
tilegen=$1 work=$2 fake=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# says STATUS TEXT COMMAND...: ends with the status, and its output has the text.
says() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >log 2>&1 || got=$?
  if [ $got -ne "$status" ] || ! grep -q -- "$text" log; then
    printf 'status %d, expected %d and "%s": %s\n' $got "$status" "$text" "$*"
    cat log
    exit 1
  fi
}

cat >fill.tl <<'END'
tl 1 program fill
param WIDTH in {1, 64, 2048}
dim m
tensor X: f32[m, 2048]
kernel k grid (b: m, c: 2048 // WIDTH) {
  parallel i in WIDTH { X[b, c * WIDTH + i] = 1.0f32 }
}
END
says 0 "^[0-9.]* us$" "$tilegen" measure fill.tl --target host --sizes m=64 --param WIDTH=64
says 1 "no clock" "$tilegen" measure fill.tl --target sim:sm_80
says 1 "no estimates" "$tilegen" tune fill.tl --target host
says 2 "go with --measure" "$tilegen" tune fill.tl --target host --best 2

# The processes that measure find what the program includes.
mkdir other
printf 'param WIDTH in {64, 2048}\n' >other/widths.tl
sed 's/^param.*/include "widths.tl"/' fill.tl >included.tl
says 0 "^2 configurations of fill for host by time, 2 measured, 0 refused$" \
  "$tilegen" tune included.tl -I other --target host --sizes m=64 --measure
says 0 "2 measured, 0 refused$" "$tilegen" tune - -Iother --target host --sizes m=64 --measure <included.tl

# All of a host's, the worst last; a pipe sees no bar.
says 0 "^3 configurations of fill for host by time, 3 measured, 0 refused$" \
  "$tilegen" tune fill.tl --target host --sizes m=64 --measure --records records
tail -1 log | grep -q ' 1$' || { cat log; exit 1; }
if grep -q '#\|\[' log; then echo "a bar without a terminal"; cat log; exit 1; fi
[ "$(ls records | wc -l)" = 1 ]

# Remembered: within a bucket of sizes nothing runs, so that the times are the same; a text of standard input too.
cp log first
says 0 "3 measured" "$tilegen" tune - --target host --sizes m=60 --measure --records records <fill.tl
diff first log
printf '[' >records/"$(ls records)"
says 0 "3 measured" "$tilegen" tune - --target host --sizes m=64 --measure --records records <fill.tl
grep -q tilegen_record records/*
[ "$(ls records | wc -l)" = 1 ]
says 0 "^2 configurations.*2 measured" "$tilegen" tune fill.tl --target host --sizes m=8 --measure --best 2

# On a terminal there is a bar.
if command -v script >/dev/null; then
  script -qec "'$tilegen' tune fill.tl --target host --sizes m=8 --measure" typescript >log 2>&1
  grep -q '\[#*\.*\] [0-9]*/9  WIDTH' log || { cat -v log; exit 1; }
fi

# One that does not end in time is refused, the others go on.
cat >slow.tl <<'END'
tl 1 program slow
param TURNS in {1, 1000000000000}
tensor X: f32[64]
kernel k grid (b: 1) {
  alloc x: shared f32[64]
  fill x, 0.0f32
  serial turn in 0 .. TURNS {
    parallel i in 64 { x[i] = x[i] * 0.5f32 + X[i] }
  }
  parallel i in 64 { X[i] = x[i] }
}
END
says 0 "1 measured, 1 refused" "$tilegen" tune slow.tl --target host --measure --limit 2 --refused
grep -q "refused  *1000000000000" log
grep -q "did not end within 2 seconds" log
says 2 "seconds above 0" "$tilegen" tune slow.tl --target host --measure --limit 0

# Of a device: the best by the model. Every process whose driver fails is refused.
cat >rows.tl <<'END'
tl 1 program rows
param ROWS in {16, 32, 64}
param THREADS in {64, 128}
dim m
tensor X: f32[m, 64] readonly
tensor Y: f32[m, 64]
kernel k grid (b: ceildiv(m, ROWS)) threads THREADS {
  alloc x: shared f32[ROWS, 64]
  copy X[b * ROWS :+ ROWS, 0 :+ 64] -> x
  copy x -> Y[b * ROWS :+ ROWS, 0 :+ 64]
}
END
on_fake=(env TILEGEN_CUDA_DRIVER="$fake" TILEGEN_FAKE_CUDA=capability=90)
says 0 "^6 configurations of rows for sm_90a by time, 2 measured, 0 refused$" \
  "${on_fake[@]}" "$tilegen" tune rows.tl --target sm_90a --sizes m=4096 --measure --best 2 --records device
grep -q "fake\|Fake" device/*
says 1 "of 2 configurations of 'rows' none can be measured for sm_90a" \
  env TILEGEN_CUDA_DRIVER=/nowhere/libcuda.so.1 "$tilegen" tune rows.tl --target sm_90a --measure --best 2
grep -q "driver_absent" log
# Where there is no device, that of any one is taken.
says 0 "2 measured" env TILEGEN_CUDA_DRIVER=/nowhere/libcuda.so.1 \
  "$tilegen" tune rows.tl --target sm_90a --sizes m=4096 --measure --best 2 --records device

# A range of sizes: code for parts of it, chosen by the model, and what is refused.
cat >product.tl <<'END'
tl 1 program product
param BM in {16, 128}
dim m
tensor A: f16[m, 4096] readonly
tensor B: f16[4096, 4096] readonly
tensor C: f16[m, 4096]
kernel k grid (by: ceildiv(m, BM), bx: 64) {
  alloc a: shared f16[BM, 64]
  alloc b: shared f16[64, 64]
  alloc acc: fragment f32[BM, 64]
  fill acc, 0.0f32
  pipelined ko in 0 .. 64 {
    copy A[by * BM :+ BM, ko * 64 :+ 64] -> a
    copy B[bx * 64 :+ 64, ko * 64 :+ 64] -> b
    gemm a, b -> acc {transpose_b}
  }
  copy acc -> C[by * BM :+ BM, bx * 64 :+ 64]
}
END
says 0 "^  m up to [0-9]*\( or m [0-9]* .. [0-9]*\)*: BM 16$" "$tilegen" compile product.tl --target sm_90a --tune model --sizes m=1..8192
grep -q "m above [0-9]*: BM 128$" log || { cat log; exit 1; }
says 0 "in all" "$tilegen" compile product.tl --target sm_90a --tune model --sizes m=1..8192 --specialisations 1
if [ "$(grep -c "BM" log)" != 1 ]; then cat log; exit 1; fi
says 1 "tl_tune takes one size" "$tilegen" tune product.tl --target sm_90a --sizes m=1..8192
says 1 "expected a name, '=' and a size" "$tilegen" compile product.tl --target sm_90a --sizes m=8..
says 2 "specialisations" "$tilegen" compile product.tl --target sm_90a --sizes m=1..8 --specialisations 33
echo "tuned"
