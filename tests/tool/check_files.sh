#!/usr/bin/env bash
# Files that cannot be read, outputs that cannot be written and numbers that are none: a message, and status 2.
# check_files.sh TILEGEN PROGRAMS WORK
set -euo pipefail
tilegen=$1 programs=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
program=$programs/scaled_rows.tl
mkdir folder folder.npy
: >empty.json
head -c 16 /dev/zero >zeros.json
ln -s /dev/zero endless.npy
run=("$tilegen" run "$program" --m 3 --s 1)

# refuses TEXT COMMAND...: status 2, and stderr says it is the tool's message, with the text. Memory and time are bounded:
# nothing that goes on for ever is read to its end. $to is where standard output goes.
refuses() {
  local text=$1 got=0
  shift
  (ulimit -v 8000000; [ "${to-}" = closed ] && exec >&- || exec >"${to-out}"; exec timeout 20 "$@") 2>log || got=$?
  if [ $got -ne 2 ] || ! grep -q -- "^tilegen: .*$text" log; then
    printf 'status %d, expected 2 and "%s": %s\n' $got "$text" "$*"
    cat log
    exit 1
  fi
}

# what is read
for from in folder absent.tl "$program/under" ''; do
  for command in run show compile check; do refuses "cannot be read" "$tilegen" $command "$from"; done
done
for command in run show compile check; do
  refuses "/dev/zero: has more than the [0-9]* bytes" "$tilegen" $command /dev/zero
  refuses "standard input: has more than" bash -c '"$1" "$2" - </dev/zero' _ "$tilegen" $command
  refuses "standard input: cannot be read: Is a directory" bash -c '"$1" "$2" - <folder' _ "$tilegen" $command
  refuses "standard input: cannot be read" bash -c '"$1" "$2" - <&-' _ "$tilegen" $command
  for schedule in folder absent.json /dev/zero empty.json zeros.json; do
    [ $command = compile ] && given=() || given=(--m 3 --s 1)
    [ $command = show ] && given=()
    refuses "^tilegen: $schedule: \|$schedule: " "$tilegen" $command "$program" "${given[@]}" --schedule $schedule
  done
done
for data in folder.npy absent.npy endless.npy; do refuses "$data" "$tilegen" run "$program" --X $data --s 1; done

# what is written
for command in help version devices "show $program --what text" "show $program" "show $program --what llvm" \
               "compile $program" "compile $program --emit asm -o -" "compile $program --schedule-out -" \
               "check $program --m 3 --s 1" "check $program --m 3 --s 1 --json"; do
  to=/dev/full refuses "standard output: cannot be written" "$tilegen" $command
  to=closed refuses "standard output: cannot be written" "$tilegen" $command
done
to=/dev/full refuses "standard output: cannot be written" "${run[@]}"
for path in folder /dev/full absent/out; do
  refuses "$path: cannot be written" "$tilegen" compile "$program" -o $path
  refuses "$path: cannot be written" "$tilegen" compile "$program" --schedule-out $path
done
refuses "absent/0\..*svg: cannot be written" "$tilegen" show "$program" --what layouts --svg absent
refuses "absent/Y.npy" "${run[@]}" --save absent
mkdir full
ln -s /dev/full full/Y.npy
refuses "full/Y.npy: could not be written" "${run[@]}" --save full
# A file that is written does not take the number of a closed standard output.
mkdir kept
to=closed refuses "standard output: cannot be written" "${run[@]}" --save kept
"${run[@]}" --save folder >log
cmp kept/Y.npy folder/Y.npy

# numbers
for wrong in x -1 1x '' 1.5 99999999999999999999 ' 1'; do
  refuses "--seed needs an integer from 0 .*got '$wrong'" "${run[@]}" --seed "$wrong"
  refuses "--seed needs an integer from 0" "$tilegen" check "$program" --m 3 --s 1 --seed "$wrong"
  refuses "--repeats needs an integer from 1" "${run[@]}" --repeats "$wrong"
  refuses "parameter m needs an integer\|no usable number\|is too large\|must be" "$tilegen" run "$program" --m "$wrong" --s 1
done
refuses "--repeats needs" "${run[@]}" --repeats 0
for wrong in x -1 nan inf 1e999 1e-5x; do
  refuses "--tolerance needs a number that is not negative" "${run[@]}" --tolerance "$wrong"
  refuses "--tolerance needs a number that is not negative" "$tilegen" check "$program" --m 3 --s 1 --tolerance "$wrong"
done
for wrong in x '' 1e999 2,5; do refuses "scalar s needs a number" "$tilegen" run "$program" --m 3 --s "$wrong"; done
for wrong in x48 5x 5xx48 99999999999x48 5x48x; do refuses "" "$tilegen" run "$program" --X "$wrong" --s 1; done
refuses "is too large\|out of memory" "$tilegen" run "$program" --m 9000000000000000 --s 1
refuses "is too large\|out of memory" "$tilegen" run "$program" --m 1000000000 --s 1
"${run[@]}" --seed 0 --repeats 1 --tolerance 0.5 >log
echo "all right"
