#!/usr/bin/env python3
"""Random programs on a device, by many processes at once, each judged by the interpreter and the host's code:
random_programs.py GPU_TESTS [--count 2000] [--seed 1] [--target device] [--jobs N] [--seconds 240] [--failures FOLDER]

A program that differs, hangs, faults or takes its process with it is reported and lies in FOLDER as text that states its launch
and what was wrong; the programs behind it go on in a new process. No program begins after --seconds, and the summary says how
many were judged. Exit status 1 when anything failed or was not judged, 77 without a device. Standard library only.

One that failed, made small:   TILEGEN_SHARD=FOLDER TILEGEN_SEED=n TILEGEN_SHRINK=1 TILEGEN_TARGETS=sm_90a \\
    GPU_TESTS --gtest_filter=RandomPrograms.Shard
"""
import argparse
import collections
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from run_gpu_tests import device_target

LINE = re.compile(r"program (\d+) (begins|agree|invalid|refused|differ|rejected|crashed) ?(.*)")
DEFECTS = ("differ", "rejected", "crashed", "ended", "hung")


class Run:
    """What all workers share; its lock guards everything but the queue."""

    def __init__(self, args, folder):
        self.args, self.folder, self.lock = args, folder, threading.Lock()
        self.start, self.counts, self.failed, self.refused = time.time(), collections.Counter(), [], collections.Counter()
        self.shards = queue.SimpleQueue()
        for seed in range(args.seed, args.seed + args.count, args.shard):
            self.shards.put((seed, min(seed + args.shard, args.seed + args.count)))

    def late(self):
        return time.time() - self.start > self.args.seconds

    def note(self, seed, kind, text):
        with self.lock:
            self.counts[kind] += 1
            if kind == "refused":
                self.refused[re.sub(r"\d+", "n", text)[:150]] += 1
            if kind in DEFECTS:
                self.failed.append((seed, kind, text))
                print(f"FAILED program {seed} ({kind}): {text[:300]}", flush=True)

    def keep(self, seed, kind, text):
        """The text of a program that took its process with it, in the folder of the failures."""
        name = f"random_{seed}.tl"
        with self.lock:
            os.makedirs(self.args.failures, exist_ok=True)
            kept = os.path.join(self.args.failures, name)
            if os.path.exists(os.path.join(self.folder, name)):
                shutil.move(os.path.join(self.folder, name), kept)
            if kind in ("ended", "hung"):
                with open(kept, "a", encoding="utf-8") as f:
                    f.write("".join(f"; {line}\n" for line in f"{kind}: {text}".splitlines()))


def run_shard(run, first, last):
    """Judges programs until one fails; the first one that was not begun."""
    environment = dict(os.environ, TILEGEN_TARGETS=run.args.target, TILEGEN_SHARD=run.folder, TILEGEN_SEED=str(first),
                       TILEGEN_COUNT=str(last - first))
    environment.setdefault("TILEGEN_GPU_TIMEOUT", "20")  # of a launch; its process says what was launched
    with tempfile.TemporaryFile("w+", errors="replace") as errors, subprocess.Popen(
            [run.args.program, "--gtest_filter=RandomPrograms.Shard"], stdout=subprocess.PIPE, stderr=errors, text=True,
            errors="replace", env=environment) as process:
        state = {"at": None, "next": first, "since": time.time()}
        killed = []

        def watch():
            while process.poll() is None:
                time.sleep(0.2)
                if time.time() - state["since"] > run.args.limit:
                    killed.append("hung")
                    return process.kill()
                if run.late() and state["at"] is None:
                    killed.append("late")
                    return process.kill()
            return None

        watcher = threading.Thread(target=watch)
        watcher.start()
        failed = False
        for line in process.stdout:
            match = LINE.match(line)
            if not match:
                continue
            seed, kind, text = int(match[1]), match[2], match[3]
            state["since"] = time.time()
            if kind == "begins":
                state["at"], state["next"] = seed, seed + 1
                continue
            state["at"] = None
            run.note(seed, kind, text)
            if kind in DEFECTS:
                failed = True
                run.keep(seed, kind, text)
            if run.late():
                killed.append("late")
                process.kill()
                break
        process.wait()
        watcher.join()
        errors.seek(0)
        said = errors.read().strip()
    if state["at"] is not None:  # it ended within a program
        hung = "hung" in killed or process.returncode == 124
        kind = "hung" if hung else "ended"
        why = said[-600:] or (f"no word for {run.args.limit:g} seconds" if hung else f"exit status {process.returncode}")
        run.note(state["at"], kind, why)
        run.keep(state["at"], kind, why)
    elif state["next"] == first and not killed and not failed:
        run.note(first, "ended", said[-600:] or f"the process began no program, exit status {process.returncode}")
        return first + 1
    return state["next"]


def work(run):
    while not run.late():
        try:
            first, last = run.shards.get_nowait()
        except queue.Empty:
            return
        while first < last and not run.late():
            first = run_shard(run, first, last)


def progress(run, workers):
    said = 0.0
    while any(w.is_alive() for w in workers):
        time.sleep(0.1)
        if time.time() - said < run.args.progress:
            continue
        said = time.time()
        with run.lock:
            print(f"{sum(run.counts.values())} of {run.args.count} programs, {len(run.failed)} failed, {said - run.start:.0f} s",
                  flush=True)


def summary(run):
    judged = sum(run.counts.values())
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(run.counts.items()))
    print(f"{judged} of {run.args.count} random programs for {run.args.target} from seed {run.args.seed}: {kinds}; "
          f"{time.time() - run.start:.0f} s")
    for why, times in run.refused.most_common(8):
        print(f"  {times} refused: {why}")
    for seed, kind, text in sorted(run.failed):
        print(f"  failed: {os.path.join(run.args.failures, f'random_{seed}.tl')} ({kind}: {text.splitlines()[0][:200] if text else ''})")
    if judged < run.args.count:
        print(f"  not judged in {run.args.seconds:g} s: {run.args.count - judged}")
    return 1 if run.failed or judged < run.args.count else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--target", default="device", help="'device': that of the first CUDA device")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--shard", type=int, default=25, help="programs of one process")
    parser.add_argument("--seconds", type=float, default=240, help="no program begins after them")
    parser.add_argument("--limit", type=float, default=60, help="seconds of one program")
    parser.add_argument("--failures", default="random-failures", help="folder for programs that fail")
    parser.add_argument("--progress", type=float, default=5, help="seconds between lines of progress")
    args = parser.parse_args()
    if args.target == "device":
        args.target = device_target()
        if args.target is None:
            print("skipped: no CUDA device that the library has a target for")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(args, folder)
        workers = [threading.Thread(target=work, args=(run,)) for _ in range(max(args.jobs, 1))]
        for worker in workers:
            worker.start()
        progress(run, workers)
        sys.exit(summary(run))


if __name__ == "__main__":
    main()
