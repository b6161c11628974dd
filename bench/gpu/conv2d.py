#!/usr/bin/env python3
"""2-D convolutions, channels last, f16, against PyTorch's (cuDNN, fastest algorithm).
  conv2d.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import product_programs
from tilegen import f16

# ((images, rows, columns) of pixels, f, c) of a tile, threads, stages
TILES = [(((1, 1, 64), 128, 64), 128, 4), (((1, 1, 64), 256, 64), 128, 4), (((1, 1, 128), 256, 64), 256, 4), (((1, 2, 64), 256, 64), 256, 4),
         (((1, 2, 64), 128, 64), 256, 4), (((1, 8, 16), 256, 64), 256, 4), (((1, 16, 8), 256, 64), 256, 4), (((1, 16, 8), 128, 64), 256, 4),
         (((2, 8, 8), 256, 64), 256, 4), (((32, 2, 2), 256, 64), 256, 4), (((32, 2, 2), 128, 64), 256, 4), (((32, 4, 1), 128, 64), 256, 4)]


class Conv(contest.Case):
    def __init__(self, images, size, channels, filters, kernel=3):
        self.shape, self.kernel, self.pad = (images, size, channels, filters), kernel, kernel // 2
        pixels = images * size * size
        self.flops = 2.0 * pixels * filters * channels * kernel * kernel
        self.nbytes = 2 * (pixels * (channels + filters) + filters * channels * kernel * kernel)
        self.sizes = f"batch={images},channels={channels},filters={filters},height={size},width={size}"

    def small(self):
        return Conv(2, 19, 72, 136, self.kernel)

    def inputs(self, device):
        images, size, channels, filters = self.shape
        half = lambda *shape: torch.randn(shape, device=device).to(torch.float16)
        x, w = half(images, size, size, channels), half(filters, self.kernel, self.kernel, channels)
        return {"x": x, "w": w, "out": half(images, size, size, filters)}

    def part(self, name, tensor):
        return tensor[-1]

    def reference(self, t):
        out = torch.nn.functional.conv2d(t["x"][-1:].permute(0, 3, 1, 2).float(), t["w"].permute(0, 3, 1, 2).float(), padding=self.pad)
        return {"out": out[0].permute(1, 2, 0)}

    def ours(self):
        arguments = lambda t: (t["x"], t["w"], t["out"])
        kernel, pad = (self.kernel,) * 2, (self.pad,) * 2
        return {f"ours {'x'.join(map(str, pixels))} {tf} {tc} {threads} {stages}":
                (product_programs.conv2d(f16, (pixels, tf, tc), threads, stages, kernel, pad), arguments)
                for (pixels, tf, tc), threads, stages in TILES}

    def peers(self, t):
        def run(t):
            torch.backends.cudnn.benchmark = True
            out = torch.nn.functional.conv2d(t["x"].permute(0, 3, 1, 2), t["w"].permute(0, 3, 1, 2), padding=self.pad)
            return {"out": out.permute(0, 2, 3, 1)}
        return {"cudnn": run}


CASES = {f"conv{kernel}_{images}x{size}x{size}_{channels}_{filters}": Conv(images, size, channels, filters, kernel)
         for images, size, channels, filters, kernel in ((32, 56, 64, 64, 3), (32, 56, 128, 128, 3), (32, 28, 256, 256, 3), (32, 14, 512, 512, 3),
                                                         (8, 128, 256, 256, 3), (8, 64, 512, 512, 3), (32, 56, 256, 512, 1))}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
