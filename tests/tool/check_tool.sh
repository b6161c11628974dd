#!/usr/bin/env bash
# The command line tool from the outside.   check_tool.sh TILEGEN PROGRAMS WORK FAKE_CUDA FAKE_HIP
set -euo pipefail
tilegen=$1 programs=$2 work=$3 fake=$4
rm -rf "$work"
mkdir -p "$work"
cd "$work"
program=$programs/scaled_rows.tl
export TILEGEN_HIP_RUNTIME=/nowhere/libamdhip64.so  # the machine's own devices are none of these tests'

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

says 2 "usage\|devices" "$tilegen"
says 0 "tilegen run FILE" "$tilegen" help
says 2 "no command 'fly'" "$tilegen" fly
says 0 "^device 0" "$tilegen" devices
says 0 "^no CUDA .*driver_absent" env TILEGEN_CUDA_DRIVER=/nowhere/libcuda.so.1 "$tilegen" devices
says 0 "sm_80" "$tilegen" devices

# run: random data, files, saved results, refusals
says 0 "^Y  *right" "$tilegen" run "$program" --m 37 --s 2.5
says 0 "^Y  *right" "$tilegen" run "$program" --m 0 --s 1
mkdir saved
says 0 "^Y  *right" "$tilegen" run "$program" --X 5x48 --s -1 --save saved
says 0 "^Y  *right" "$tilegen" run "$program" --X saved/Y.npy --s 3
cat >halves.tl <<'END'
tl 1 program halves
dim n
dim k
tensor X: f32[2 * n + 1, ceildiv(k, 4)] readonly
tensor Z: f32[k + n] readonly
tensor Y: f32[n]
kernel h grid (b: n) { parallel i in 1 { Y[b + i] = X[2 * b, 0] + Z[b] } }
END
says 0 "^Y  *right" "$tilegen" run halves.tl --X 11x3 --Z 15  # n = 5 by X, k = 10 by Z
says 2 "dimension k is not known" "$tilegen" run halves.tl --X 11x3
says 2 "given as 11x4 but must be 11x3" "$tilegen" run halves.tl --X 11x4 --Z 15
says 2 "scalar s has no value" "$tilegen" run "$program" --m 3
says 2 "dimension m is not known" "$tilegen" run "$program" --s 1
says 2 "given as 5x47 but must be 5x48" "$tilegen" run "$program" --X 5x47 --s 1
says 2 "neither an option nor a parameter" "$tilegen" run "$program" --m 3 --s 1 --q 4
says 2 "cannot be read" "$tilegen" run absent.tl

# compile-time parameters: a product at several bindings against the interpreter
gemm=$programs/../../files/text/gemm_params.tl
says 0 "BM = 128 in {64, 128}" "$tilegen" show "$gemm" --what text --param BM=128
for binding in "BM=64 BN=64 BK=32 STAGES=2 THREADS=128" "BM=128 BN=64 BK=16 STAGES=3 THREADS=256"; do
  read -ra given <<<"${binding// / --param }"
  for target in host sim:sm_80; do
    says 0 "^C  *right" "$tilegen" run "$gemm" --m 70 --n 136 --k 72 --target $target --repeats 1 --param "${given[@]}"
  done
done
says 0 "0 findings" "$tilegen" check "$gemm" m=70 n=40 k=64 --param BM=128 --param BN=64
says 1 "is bound to 96" "$tilegen" check "$gemm" m=70 n=40 k=64 --param BM=96
says 1 "it has BM, BN, BK, STAGES, THREADS" "$tilegen" compile "$gemm" --target host --param BQQQ=1
says 1 "is bound to 96" "$tilegen" compile "$gemm" --target host --param BM=96
says 2 "NAME=INTEGER" "$tilegen" compile "$gemm" --target host --param BM
says 2 "given twice" "$tilegen" compile "$gemm" --target host --param BM=64 --param BM=128
says 0 "configurations of gemm_params for sm_90a" "$tilegen" tune "$gemm" --target sm_90a --sizes m=4096,n=4096,k=4096
says 0 "of best  *BM  *BN  *BK  *STAGES  *THREADS" "$tilegen" tune "$gemm" --target sm_80 --count 2
says 1 "no estimates for target 'host" "$tilegen" tune "$gemm" --target host
says 1 "which is no dim" "$tilegen" tune "$gemm" --target sm_80 --sizes q=1
says 0 "--param NAME=VALUE" "$tilegen" help

# format: the same program, laid out; twice is once
printf 'tl 1 program  p ;a name\ndim n\ntensor X:f32[n]\nkernel k grid(b:n){parallel i in 1{X[b]=-1 } ; all\n}\n' >loose.tl
says 0 "^tensor X: f32\[n\]" "$tilegen" format loose.tl
says 1 "loose.tl: not as" "$tilegen" format --check loose.tl
"$tilegen" format --write loose.tl
"$tilegen" format --check loose.tl
says 0 "^kernel k grid (b: n) { parallel i in 1 { X\[b\] = -1 }  ; all" "$tilegen" format loose.tl
says 1 "scaled_rows.tl: not as" "$tilegen" format --check loose.tl "$program"
says 1 "syntax_error" "$tilegen" format - <<<"tl 1 program"
says 2 "several files" "$tilegen" format loose.tl loose.tl
says 0 "^tl_status build_scaled_rows(const tl_context" "$tilegen" emit-c "$program"
says 1 "syntax_error" "$tilegen" emit-c - <<<"tl 1 program"
says 2 "one program file" "$tilegen" emit-c
printf 'tl 1 program broken\nkernel k grid(b: 1) { copy A -> B }\n' >broken.tl
says 1 "broken.tl:2:" "$tilegen" show broken.tl

# include: files beside the program, then in folders; a file has one name by whatever path
mkdir -p parts/lib other
printf 'tl 1 program included\ninclude "lib/sums.tl"\ninclude "scale.tl"\ndim n\ntensor X: f32[n]\nkernel k grid (b: n) { parallel i in 1 { X[b + i] = twice(SCALE) } }\n' >parts/main.tl
printf 'include "../lib/../lib/half.tl"\ninclude "half.tl"\nfn twice(x: f32) -> f32 { return x + x + half(x) }\n' >parts/lib/sums.tl
printf 'fn half(x: f32) -> f32 { return x / 2 }\n' >parts/lib/half.tl
printf 'param ROWS in {1, 2}\nlet SCALE: f32 = ROWS_TIMES\n' >other/scale.tl
says 1 'no file scale.tl beside parts/main.tl; -I FOLDER' "$tilegen" show parts/main.tl
says 1 'no file scale.tl beside parts/main.tl, nor in parts/lib;' "$tilegen" show parts/main.tl -I parts/lib
says 1 "^other/scale.tl:2:18: error .*unknown name 'ROWS_TIMES'.*, included at parts/main.tl:3:9" "$tilegen" show parts/main.tl -Iother
printf 'param ROWS in {1, 2}\nlet SCALE = cast(f32, ROWS)\n' >other/scale.tl
ln -s scale.tl other/link.tl
says 0 "^X  *right" "$tilegen" run parts/main.tl -I parts/lib -I other --n 5 --target host
says 0 "^    X\[b + i\] = 5.0f32" "$tilegen" show parts/main.tl -I other --what text --param ROWS=2
(cd parts && says 0 "^    X\[b + i\] = 2.5f32" "$tilegen" show - -I ../other --what text <main.tl)
says 0 "2 configurations" "$tilegen" tune parts/main.tl -I other --target sm_90a
says 0 '^include "scale.tl"' "$tilegen" format parts/main.tl -I other
"$tilegen" format --check parts/main.tl parts/lib/half.tl -I other
sed 's/include "scale.tl"/& include "link.tl" ; once/' parts/main.tl >parts/twice.tl
says 0 "build_included" "$tilegen" emit-c parts/twice.tl -I other
printf 'include "../main.tl"\n' >parts/lib/half.tl
says 1 'parts/main.tl includes itself: parts/main.tl, parts/lib/sums.tl, parts/lib/half.tl, parts/main.tl' "$tilegen" check parts/main.tl n=3
says 2 "needs a folder" "$tilegen" check parts/main.tl -I

# check: the simulator, under every order
says 0 "^order random, async earliest: 0 findings" "$tilegen" check "$program" m=5 s=2 --order all --async all
says 0 "rows/copy#" "$tilegen" check "$program" --m 37 --s 2.5 --target sm_90
"$tilegen" check "$program" m=3 s=1 --json >report.json
python3 -c 'import json; r = json.load(open("report.json"))["runs"][0]; k = r["kernels"][0]
assert k["findings"] == [] and k["counters"]["global_bytes"] > 0 and r["wrong_values"] == []'
printf 'tl 1 program racy\ntensor Y: f32[4]\nkernel k grid(b: 2) {\n  parallel i in 4 {\n    Y[i] = cast(f32, b)\n  }\n}\n' >racy.tl
says 1 "racy.tl:4:3: data_race: k/i: write of Y at Y\[0\]" "$tilegen" check racy.tl --no-values
says 1 "way out: " "$tilegen" check racy.tl --no-values
says 2 "one of round_robin" "$tilegen" check "$program" --order up
says 2 "neither an option" "$tilegen" check "$program" --m 3 --s 1 --repeats 4
says 1 "sm_1" "$tilegen" check "$program" --m 3 --s 1 --target sm_1

# show: every form, and text that reads back as itself
for what in text schedule schedule-json layouts pictures scheduled thread llvm llvm-opt asm; do
  "$tilegen" show "$program" --what $what >$what.out
  [ -s $what.out ] || { echo "--what $what printed nothing"; exit 1; }
done
"$tilegen" show text.out --what text | cmp - text.out
"$tilegen" show - --what text <text.out | cmp - text.out
grep -q 'rows:x' layouts.out
grep -q 'R0' pictures.out
mkdir drawn
says 0 "pictures in drawn" "$tilegen" show "$program" --what layouts --svg drawn
for svg in drawn/*.svg; do grep -q '</svg>' "$svg"; done
says 2 "goes with" "$tilegen" show "$program" --what text --svg drawn
says 0 "bound by" "$tilegen" show "$program" --target sm_90a --what cost
says 0 "pictures in drawn" "$tilegen" show "$program" --target sm_90a --what cost --svg drawn
says 0 "\"busy\"" "$tilegen" show "$program" --target sm_90a --what cost-json
says 1 "there is no form 'cost'" "$tilegen" show "$program" --target host --what cost
says 1 "no dim or integer scalar of the program" "$tilegen" show "$program" --target sm_90a --what cost --sizes nosuch=3
grep -q 'define' llvm.out
says 2 "there is no form 'bytecode'" "$tilegen" show "$program" --what bytecode
says 0 "sm_80" "$tilegen" show "$program" --target sm_80 --what schedule
says 1 "sm_1" "$tilegen" show "$program" --target sm_1
"$tilegen" show "$gemm" --target sm_90a --what scheduled >scheduled.out
for word in producer_acquire consumer_wait; do
  grep -q "$word" scheduled.out || { echo "--what scheduled has no $word"; exit 1; }
done

says 0 '"kernel": "rows"' "$tilegen" show "$program" --target sm_90 --what schedule-json --fallback 1
says 0 "entry rows(" "$tilegen" show "$program" --target sm_90 --what ptx --fallback 1
says 1 "there is no fallback version 2" "$tilegen" show "$program" --target sm_90 --fallback 2
says 1 "there is no fallback version 1" "$tilegen" show "$program" --fallback 1

# compile: a full schedule replays to itself; a wrong one is refused
says 0 "in all" "$tilegen" compile "$program" --schedule-out full.json --emit asm -o out.s
[ -s out.s ]
says 0 "in all" "$tilegen" compile "$program" --schedule full.json --schedule-out again.json
cmp full.json again.json
sed 's/"rows:x"/"rows:absent"/' full.json >wrong.json
says 1 "rows:absent" "$tilegen" compile "$program" --schedule wrong.json
says 1 "JSON\|json" "$tilegen" compile "$program" --schedule "$program"
# what it tells of its work, where it is asked
says 0 "\[info\] plan: [0-9.]* ms: rows: " env TILEGEN_LOG=info "$tilegen" compile "$program" --target sm_90
says 0 "\[debug\] generate.emit: " env TILEGEN_LOG=debug "$tilegen" compile "$program" --target sm_90
says 0 "\[info\] fallback: scaled_rows for sm_90, " env TILEGEN_LOG=info "$tilegen" show "$program" --target sm_90 --fallback 1
says 1 "\[error\] compile: .*rows:absent" env TILEGEN_LOG=error "$tilegen" compile "$program" --schedule wrong.json
for quiet in "" off; do
  TILEGEN_LOG=$quiet "$tilegen" compile "$program" --target sm_90 2>log >/dev/null
  [ ! -s log ] || { echo "TILEGEN_LOG=$quiet is not quiet"; cat log; exit 1; }
done
# GPU targets: PTX without a device; devices, copies and launches on a stand-in for the driver, which computes nothing
says 0 "in all" "$tilegen" compile "$program" --target sm_90 -o out.ptx
grep -q '^.target sm_90' out.ptx
says 0 "in all" "$tilegen" compile "$program" --target sm_80 --emit ptx -o out.ptx
grep -q '^.visible .entry rows(' out.ptx
says 0 "^.target sm_89" "$tilegen" show "$program" --target sm_89 --what ptx
says 1 "no form 'ptx'" "$tilegen" show "$program" --target host --what ptx
nowhere=(env TILEGEN_CUDA_DRIVER=/nowhere/libcuda.so.1)
says 1 "driver_absent" "${nowhere[@]}" "$tilegen" run "$program" --target sm_90 --m 3 --s 1
says 1 "driver_absent" "${nowhere[@]}" "$tilegen" run "$program" --target cuda --m 3 --s 1
says 0 "^Y  *right" "${nowhere[@]}" "$tilegen" run "$program" --m 3 --s 1
cuda=(env TILEGEN_CUDA_DRIVER="$fake")
says 0 "^device 2   Fake L4" "${cuda[@]}" TILEGEN_FAKE_CUDA=devices=2 "$tilegen" devices
says 0 "driver   CUDA 12.8" "${cuda[@]}" "$tilegen" devices
says 0 "^  target   sm_89" "${cuda[@]}" TILEGEN_FAKE_CUDA=capability=89 "$tilegen" devices
says 0 "^no CUDA .*10.2, 11.0 or newer" "${cuda[@]}" TILEGEN_FAKE_CUDA=version=10020 "$tilegen" devices
says 0 "^no CUDA .*device_absent" "${cuda[@]}" TILEGEN_FAKE_CUDA=devices=0 "$tilegen" devices
says 1 "oldest supported is 8.0" "${cuda[@]}" TILEGEN_FAKE_CUDA=capability=75 "$tilegen" compile "$program" --target cuda
says 0 "form       rows: .*32 registers" "${cuda[@]}" "$tilegen" run "$program" --m 3 --s 1 --no-check --forms
says 0 "^time" "${cuda[@]}" "$tilegen" run "$program" --X saved/Y.npy --s 1 --no-check --target cuda --save .
[ "$(stat -c %s Y.npy)" -eq "$(stat -c %s saved/Y.npy)" ]
says 1 "^Y  *WRONG" "${cuda[@]}" "$tilegen" run "$program" --m 3 --s 1 --target sm_90
says 1 "CUDA_ERROR_OUT_OF_MEMORY" "${cuda[@]}" TILEGEN_FAKE_CUDA=fail=cuMemAlloc_v2:2 "$tilegen" run "$program" --m 3 --s 1
# HIP devices: on a stand-in for the runtime, which runs the code
hip=(env TILEGEN_CUDA_DRIVER=/nowhere/libcuda.so.1 TILEGEN_HIP_RUNTIME="$5")
says 0 "^device 2   Fake MI250X" "${hip[@]}" TILEGEN_FAKE_HIP=devices=2 "$tilegen" devices
says 0 "driver   HIP 6.2" "${hip[@]}" "$tilegen" devices
says 0 "^  target   gfx90a" "${hip[@]}" TILEGEN_FAKE_HIP=architecture=gfx90a:xnack- "$tilegen" devices
says 0 "^no CUDA .*driver_absent" "${hip[@]}" "$tilegen" devices
says 0 "^no HIP .*5.7, 6.0 or newer" "${hip[@]}" TILEGEN_FAKE_HIP=version=50700000 "$tilegen" devices
says 0 "^no HIP .*device_absent" "${hip[@]}" TILEGEN_FAKE_HIP=devices=0 "$tilegen" devices
says 1 "supported are gfx942, gfx90a" "${hip[@]}" TILEGEN_FAKE_HIP=architecture=gfx1100 "$tilegen" compile "$program" --target hip
says 0 "^Y  *right" "${hip[@]}" "$tilegen" run "$program" --m 3 --s 1 --target hip
says 0 "^Y  *right" "${hip[@]}" TILEGEN_FAKE_HIP=architecture=gfx90a "$tilegen" run "$program" --m 3 --s 1
says 1 "no HIP device for gfx90a" "${hip[@]}" "$tilegen" run "$program" --m 3 --s 1 --target gfx90a
says 1 "hipErrorOutOfMemory" "${hip[@]}" TILEGEN_FAKE_HIP=fail=hipMalloc:2 "$tilegen" run "$program" --m 3 --s 1
says 1 "driver_absent" "${nowhere[@]}" TILEGEN_HIP_RUNTIME=/nowhere/libamdhip64.so "$tilegen" run "$program" --target hip --m 3 --s 1
echo "all right"
