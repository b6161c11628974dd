"""Timing of contenders: CUDA graphs of back-to-back launches over input sets that rotate past the L2, short bursts after a
rest, in random order."""
import random
import statistics
import time

import torch


def rotations(nbytes, most, rotate=240e6):
    """How many input sets of nbytes make several times the L2."""
    return max(1, min(most, -int(-rotate // nbytes)))


def captured(fn, sets, launches):
    """A graph of launches fn(i) over the sets in turn."""
    fn(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for j in range(launches):
            fn(j % sets)
    return graph


def graphs_of_right(name, found, sets, want, launches, watch):
    """{who: a graph of its launches} of the contenders that compute `want`, within 2e-3, in the last tensor of a set. Who
    is wrong is printed. `found` keeps alive what the graphs launch."""
    graphs = {}
    for who, fn in found.items():
        sets[0][-1].fill_(float("nan"))
        with watch(who):
            fn(0)
            torch.cuda.synchronize()
        error = float((sets[0][-1].float() - want).norm() / want.norm())
        if not error < 2e-3:
            print(f"{name}: {who} is wrong: {error}", flush=True)
            continue
        with watch(who):
            graphs[who] = captured(fn, len(sets), launches)
    return graphs


def replay_ms(graph, launches):
    """Milliseconds of one launch."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / launches


def copy_by_events(rounds):
    """GB/s, read and written, of PyTorch's copy of 1 GiB."""
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    rates = []
    for _ in range(rounds):
        time.sleep(0.015)
        for _ in range(3):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            y.copy_(x)
            end.record()
            torch.cuda.synchronize()
        rates.append(2 * x.nbytes / begin.elapsed_time(end) * 1e-6)
    return statistics.median(rates)


def samples(graphs, launches, rounds, watch):
    """{name: milliseconds of a launch, one a round} of the graphs; watch(name) guards each replay."""
    times = {who: [] for who in graphs}
    for _ in range(rounds):
        order = list(graphs)
        random.shuffle(order)
        for who in order:
            time.sleep(0.015)
            with watch(who):
                times[who].append(replay_ms(graphs[who], launches))
    return times


def medians(times):
    return {who: statistics.median(t) for who, t in times.items()}
