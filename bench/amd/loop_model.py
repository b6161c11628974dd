#!/usr/bin/env python3
"""How busy the matrix units of an AMD GPU are in the main loop of a kernel, from its machine code alone; needs no device.

  loop_model.py CODE.s [--target gfx942] [--kernel NAME] [--waves N] [--least SHARE] [--verbose]

CODE.s is the assembly of `tilegen compile --emit asm`. The loop is the innermost one with the most cycles of matrix
instructions; what it does under conditions counts as done. Waves of one compute unit, all that its registers and shared memory hold, run it side by side; the share is of the
cycles in which a matrix unit works to all cycles, over iterations in the steady state. It is an estimate by a static model (docs/hip.md,
"Estimates"), not a measurement. Below the least share the status is 1."""
import argparse
import dataclasses
import re
import sys

# Cycles of the matrix unit, and of the issue port: 4 cycles are one pass (LLVM's SISchedule.td, "Write*PassMAI").
PASS = 4
ISSUE = 4  # a wave issues at most once in 4 cycles
LDS_QUEUE, VMEM_QUEUE = 64, 1024  # cycles of work that wait for their unit while waves go on


@dataclasses.dataclass(frozen=True)
class Machine:
    passes: tuple  # (pattern of a matrix instruction, passes)
    lds_bytes: int = 128  # of a compute unit, in a cycle
    lds_latency: int = 64
    # Cache lines that a compute unit takes from the first cache, bytes of L2 it gets when all ask, until a load is there.
    l1_bytes: int = 64
    l2_bytes: float = 53
    memory_latency: int = 800
    barrier: int = 40
    registers: int = 512
    lds: int = 64 << 10
    compute_units: int = 304


MACHINES = {
    "gfx942": Machine(passes=((r"16x16x4_f64", 8), (r"32x32x\d+_(f16|bf16|i8|fp8|bf8)", 8), (r"16x16x\d+_(f16|bf16|i8|fp8|bf8)", 4),
                              (r"32x32x2_f32", 16), (r"16x16x4_f32", 8))),
    "gfx90a": Machine(passes=((r"16x16x4f64", 8), (r"32x32x\d+", 16), (r"16x16x\d+", 8)), l2_bytes=37,
                      compute_units=110),
}


@dataclasses.dataclass
class Instruction:
    text: str
    kind: str  # mfma, valu, salu, lds, load, store, wait, barrier, branch, nop
    cycles: int = 0  # of its unit
    issue: int = ISSUE
    bytes: int = 0
    vmcnt: int = None
    lgkmcnt: int = None


WIDTHS = {"b128": 16, "b96": 12, "b64": 8, "b32": 4, "b16": 2, "u16": 2, "i16": 2, "u8": 1, "i8": 1, "dwordx4": 16, "dwordx3": 12,
          "dwordx2": 8, "dword": 4, "ushort": 2, "short": 2, "sshort": 2, "ubyte": 1, "byte": 1, "sbyte": 1}
WAVE = 64
SLOW = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_f(16|32)|v_mul_(lo|hi)_")


def width_of(name):
    parts = name.split("_")
    for part in reversed(parts):
        if part in WIDTHS:
            return WIDTHS[part] * (2 if "read2" in name or "write2" in name else 1)
    return 4


def instruction(text, machine):
    name = text.split()[0]
    if name.startswith("v_mfma"):
        for pattern, passes in machine.passes:
            if re.search(pattern, name):
                return Instruction(text, "mfma", passes * PASS)
        raise SystemExit(f"no rate of {name}")
    if name.startswith("s_waitcnt"):
        counts = dict(re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", text))
        return Instruction(text, "wait", vmcnt=int(counts["vmcnt"]) if "vmcnt" in counts else None,
                           lgkmcnt=int(counts["lgkmcnt"]) if "lgkmcnt" in counts else None)
    if name == "s_barrier":
        return Instruction(text, "barrier")
    if name == "s_nop":
        return Instruction(text, "nop", issue=ISSUE * (1 + int(text.split()[1])))
    if name.startswith("s_load"):
        return Instruction(text, "scalar_load")
    if name.startswith(("s_cbranch", "s_branch")):
        return Instruction(text, "branch", issue=4 * ISSUE)
    if name.startswith("s_"):
        return Instruction(text, "salu")
    if name.startswith("ds_"):
        size = width_of(name) * WAVE
        return Instruction(text, "lds", cycles=max(2, -(-size // machine.lds_bytes)), bytes=size)
    if name.startswith(("global_load", "buffer_load", "flat_load", "scratch_load")):
        return Instruction(text, "load", cycles=WAVE * width_of(name) // machine.l1_bytes, bytes=WAVE * width_of(name))
    if name.startswith(("global_store", "buffer_store", "flat_store", "scratch_store", "global_atomic")):
        return Instruction(text, "store", cycles=WAVE * width_of(name) // machine.l1_bytes, bytes=WAVE * width_of(name))
    # Instructions of doubles, and packed ones of 32 bits, run at full rate; quarter rate for functions.
    return Instruction(text, "valu", cycles=4 * ISSUE if SLOW.match(name) else ISSUE)


@dataclasses.dataclass
class Kernel:
    name: str
    lines: list  # label or instruction text
    vgprs: int = 0
    lds: int = 0
    threads: int = 256


def kernels_of(text):
    found = []
    current = None
    for raw in text.splitlines():
        line = raw.split(";")[0].strip() if not raw.lstrip().startswith(";") else ""
        kernel = re.match(r"^(\w+):\s*(;.*)?$", raw)
        if kernel and not raw.startswith(".L"):
            current = Kernel(kernel.group(1), [])
            found.append(current)
            continue
        if current is None:
            continue
        if re.match(r"^\.L\w+:", line):
            current.lines.append(line.split(":")[0] + ":")
        elif re.match(r"^[vsdgfb]\w*_\w+", line) and not line.startswith("."):
            current.lines.append(line)
        for key, pattern in (("vgprs", r"\.amdhsa_next_free_vgpr (\d+)"), ("lds", r"\.amdhsa_group_segment_fixed_size (\d+)")):
            if (m := re.search(pattern, raw)) and not getattr(current, key):
                setattr(current, key, int(m.group(1)))
    by_name = {k.name: k for k in found}
    for m in re.finditer(r"\.max_flat_workgroup_size: (\d+)\n(?:.*\n)*?\s+\.name:\s+(\w+)", text):
        if m.group(2) in by_name:
            by_name[m.group(2)].threads = int(m.group(1))
    return [k for k in found if any(l.startswith("v_") or l.startswith("s_") for l in k.lines)]


def blocks_of(lines):
    """[label, instructions, labels that may follow], in the order of the text."""
    blocks = [["entry", [], []]]
    for line in lines:
        if line.endswith(":"):
            blocks.append([line[:-1], [], []])
            continue
        if blocks[-1][1] and re.match(r"s_(c?branch|endpgm)", blocks[-1][1][-1]):
            blocks.append([f"after {len(blocks)}", [], []])
        blocks[-1][1].append(line)
    for i, (_, instructions, following) in enumerate(blocks):
        last = instructions[-1] if instructions else ""
        if to := re.match(r"s_c?branch\w*\s+(\.L\w+)", last):
            following.append(to.group(1))
        if not re.match(r"s_(branch|endpgm)", last) and i + 1 < len(blocks):
            following.append(blocks[i + 1][0])
    return blocks


def cycles_of(nodes, following):
    """Sets of nodes that reach each other, of more than one or with an edge to itself."""
    def reached(start, edges):
        seen, todo = set(), [start]
        while todo:
            for to in edges[todo.pop()]:
                if to in nodes and to not in seen:
                    seen.add(to)
                    todo.append(to)
        return seen
    before = [[i for i in nodes if n in following[i]] for n in range(len(following))]
    left, found = set(nodes), []
    while left:
        node = min(left)
        cycle = reached(node, following) & reached(node, before)
        left -= cycle | {node}
        if cycle:
            found.append(cycle)
    return found


def loops_of(lines):
    """Instructions of each loop, all of its blocks in the order of the text; none that holds another one of products."""
    blocks = blocks_of(lines)
    place = {label: i for i, (label, _, _) in enumerate(blocks)}
    following = [[place[label] for label in labels] for _, _, labels in blocks]

    def innermost(nodes, following):
        for cycle in cycles_of(nodes, following):
            if not any("v_mfma" in line for i in cycle for line in blocks[i][1]):
                continue
            entries = {n for i, to in enumerate(following) if i not in cycle for n in to if n in cycle}
            inner = [[n for n in to if n not in entries] if i in cycle else to for i, to in enumerate(following)]
            yield from list(innermost(cycle, inner)) or [cycle]

    def waits(i):
        """Loads that a block leaves under way which does nothing but wait, scalar arithmetic beside."""
        work = [line for line in blocks[i][1] if not re.match(r"s_(?!waitcnt|barrier|nop|load)", line)]
        wait = re.match(r"s_waitcnt vmcnt\((\d+)\)$", work[0]) if len(work) == 1 else None
        return int(wait.group(1)) if wait else None

    def steady(cycle):
        """Of two ways to wait for loads to shared memory the one that leaves some: the other is for the last iterations."""
        kept = any(waits(i) for i in cycle)
        return [i for i in sorted(cycle) if not (kept and waits(i) == 0)]

    return [[line for i in steady(cycle) for line in blocks[i][1]] for cycle in innermost(set(range(len(blocks))), following)]


def main_loop(kernel, machine):
    best, most = [], -1
    for lines in loops_of(kernel.lines):
        body = [instruction(line, machine) for line in lines]
        busy = sum(i.cycles for i in body if i.kind == "mfma")
        if busy > most:
            best, most = body, busy
    return best


class Wave:
    def __init__(self, simd, block):
        self.simd, self.block = simd, block
        self.at, self.iteration, self.ready, self.issued = 0, 0, 0, 0
        self.vm, self.lgkm = [], []  # cycles at which what is outstanding is there, in order of issue
        self.arrived = None
        self.ends = []  # of its iterations

    def advance(self, body):
        self.at += 1
        if self.at == len(body):
            self.at = 0
            self.iteration += 1
            self.ends.append(self.ready)


def busy_share(body, machine, waves_a_block, blocks, iterations=24):
    """Of the matrix units, from a wave's iteration `iterations` / 2 on until the first wave has done all; and cycles of an
    iteration of all waves. Of waves that could issue the one goes on that did last so longest ago."""
    simds = 4
    waves = [Wave((b * waves_a_block + w) % simds, b) for b in range(blocks) for w in range(waves_a_block)]
    port = [0] * simds  # of vector instructions
    matrix = [0] * simds
    lds = vmem = l2 = 0.0
    arrived = {b: [] for b in range(blocks)}
    products = []  # (begin, cycles)
    while all(w.iteration < iterations for w in waves):
        wave = min((w for w in waves if w.arrived is None), key=lambda w: (w.ready, w.issued))
        i = body[wave.at]
        now = wave.ready
        if i.kind == "wait":
            for count, queue in ((i.vmcnt, wave.vm), (i.lgkmcnt, wave.lgkm)):
                if count is not None and len(queue) > count:
                    now = max(now, max(queue[:len(queue) - count]))
                    del queue[:len(queue) - count]
            wave.ready = now + ISSUE
        elif i.kind == "barrier":
            wave.arrived = now
            arrived[wave.block].append(wave)
            if len(arrived[wave.block]) == waves_a_block:
                meet = max(w.arrived for w in arrived[wave.block]) + machine.barrier
                for w in arrived[wave.block]:
                    w.ready, w.arrived = meet, None
                    w.advance(body)
                arrived[wave.block] = []
            continue
        elif i.kind in ("mfma", "valu"):
            first = max(now, port[wave.simd], matrix[wave.simd] if i.kind == "mfma" else 0)
            if first > now:  # until then the port is another wave's
                wave.ready = first
                continue
            port[wave.simd] = wave.ready = now + (ISSUE if i.kind == "mfma" else i.cycles)
            if i.kind == "mfma":
                matrix[wave.simd] = now + i.cycles
                products.append((now, i.cycles))
        elif i.kind == "lds":
            now = max(now, lds - LDS_QUEUE)
            lds = max(lds, now) + i.cycles
            wave.lgkm.append(lds + machine.lds_latency)
            wave.ready = now + ISSUE
        elif i.kind in ("load", "store"):
            vmem = max(vmem, now) + i.cycles
            l2 = max(l2, now) + i.bytes / machine.l2_bytes
            wave.vm.append(max(vmem, l2) + machine.memory_latency)
            wave.ready = max(now, vmem - VMEM_QUEUE) + ISSUE
        else:
            wave.ready = now + i.issue
        wave.issued = now
        wave.advance(body)
    done = max(waves, key=lambda w: w.iteration)
    first, last = done.ends[iterations // 2 - 1], done.ends[-1]
    share = sum(c for at, c in products if first <= at < last) / simds / (last - first)
    iteration = sum(i.cycles for i in body if i.kind == "mfma") * len(waves) / simds
    return share, iteration / share


def resident_blocks(kernel, machine):
    waves = -(-kernel.threads // WAVE)
    by_registers = machine.registers // max(8, -(-kernel.vgprs // 8) * 8) if kernel.vgprs else 8
    blocks = min(8, by_registers) * 4 // waves
    if kernel.lds:
        blocks = min(blocks, machine.lds // kernel.lds)
    return max(1, blocks)


def cycles_of_grid(kernel, body, target, grid, iterations):
    """Of a grid of so many blocks on all compute units, loops alone: those of the unit that has the most blocks, as
    many at once as it holds."""
    machine = MACHINES[target]
    left, at_once, cycles = -(-grid // machine.compute_units), resident_blocks(kernel, machine), 0
    while left > 0:
        blocks = min(left, at_once)
        left -= blocks
        cycles += busy_share(body, machine, -(-kernel.threads // WAVE), blocks)[1] * iterations
    return cycles


def estimate(text, target, kernel_name=None):
    """(share, cycles of an iteration, kernel, body, blocks)"""
    machine = MACHINES[target]
    kernels = [k for k in kernels_of(text) if kernel_name in (None, k.name)]
    best = max(kernels, key=lambda k: sum(i.cycles for i in main_loop(k, machine) if i.kind == "mfma"))
    body = main_loop(best, machine)
    blocks = resident_blocks(best, machine)
    share, cycles = busy_share(body, machine, -(-best.threads // WAVE), blocks)
    return share, cycles, best, body, blocks


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("code")
    args.add_argument("--target", default="gfx942", choices=sorted(MACHINES))
    args.add_argument("--kernel")
    args.add_argument("--least", type=float, default=0)
    args.add_argument("--verbose", action="store_true")
    args = args.parse_args()
    share, cycles, kernel, body, blocks = estimate(open(args.code).read(), args.target, args.kernel)
    of = lambda kind: [i for i in body if i.kind == kind]
    waves = -(-kernel.threads // WAVE) * blocks
    print(f"{kernel.name}: {blocks} blocks of {kernel.threads} threads, {kernel.vgprs} registers, {kernel.lds} bytes of LDS")
    print(f"  an iteration of a wave: {len(of('mfma'))} matrix instructions of {sum(i.cycles for i in of('mfma'))} cycles, "
          f"{len(of('valu'))} vector, {len(of('salu'))} scalar, {len(of('lds'))} of LDS, {len(of('load'))} loads, "
          f"{len(of('wait'))} waits, {len(of('barrier'))} barriers")
    print(f"  of the compute unit: {waves * sum(i.cycles for i in of('lds')):.0f} cycles of LDS, "
          f"{waves * sum(i.bytes for i in of('load')) / MACHINES[args.target].l2_bytes:.0f} of L2, "
          f"{waves / 4 * sum(i.cycles for i in of('mfma')):.0f} of a matrix unit, in {cycles:.0f} cycles")
    print(f"  matrix units busy: {share:.2f}")
    if args.verbose:
        for i in body:
            print("   ", i.kind, i.text)
    return 0 if share >= args.least else 1


if __name__ == "__main__":
    sys.exit(main())
