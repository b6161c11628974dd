#!/usr/bin/env python3
"""Products with 2:4 sparse weights, against the dense product by cuBLAS and PyTorch's semi-structured matrices (cuSPARSELt, CUTLASS).
  sparse_gemm.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import product_programs
import tilegen as tg

# (tile m, n, k), threads, stages
TILES = [((128, 256, 128), 256, 2), ((128, 128, 128), 256, 3), ((128, 128, 128), 256, 4), ((256, 128, 128), 256, 2),
         ((128, 192, 128), 256, 3), ((64, 256, 128), 128, 2)]
LIBRARIES = {"cuSPARSELt": False, "CUTLASS": True}  # whether PyTorch is told to take CUTLASS
NAMES = {torch.float16: tg.f16, torch.bfloat16: tg.bf16}


def compressed(w):
    """Values [m, k / 2] of each four's larger two, and bytes [m, k / 8] of their places, as gemm_sparse takes them."""
    groups = w.view(w.shape[0], -1, 4)
    places = groups.abs().topk(2, -1).indices.sort(-1).values
    codes = places[..., 0] | places[..., 1] << 2
    return groups.gather(-1, places).flatten(1).contiguous(), (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8).contiguous()


def pruned(w):
    """The same elements, zeros between them."""
    groups = w.view(w.shape[0], -1, 4)
    kept = torch.zeros_like(groups, dtype=torch.bool).scatter_(-1, groups.abs().topk(2, -1).indices, True)
    return torch.where(kept, groups, 0).flatten(1)


class Sparse(contest.Case):
    def __init__(self, m, n, k, dtype=torch.float16):
        self.m, self.n, self.k, self.dtype = m, n, k, dtype
        self.flops, self.nbytes = 2.0 * m * n * k, m * k + m * k // 8 + 2 * n * (m + k)  # of the dense product
        self.sizes = f"m={m},n={n},k={k}"
        self.bound = 2e-3 if dtype is torch.float16 else 1e-2

    def small(self):
        return Sparse(200, 264, 512, self.dtype)

    def inputs(self, device):
        w = pruned(torch.randn(self.m, self.k, device=device)).to(self.dtype)
        v, places = compressed(w)
        x = torch.randn(self.n, self.k, device=device).to(self.dtype)
        t = {"w": w, "v": v, "p": places.view(torch.uint16), "x": x, "out": torch.empty(self.m, self.n, device=device, dtype=self.dtype)}
        for library, cutlass in LIBRARIES.items() if device == "cuda" else ():  # weights are compressed once, before
            torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = cutlass
            try:
                t[library] = torch.sparse.to_sparse_semi_structured(w)
            except Exception as refused:  # noqa: BLE001 - the others are measured all the same
                t[library] = refused
        return t

    def reference(self, t):
        return {"out": t["w"].float() @ t["x"].float().t()}

    def ours(self):
        name = NAMES[self.dtype]
        found = {}
        for tile, threads, stages in TILES:
            for shape in (None, (self.m, self.n, self.k)):
                who = f"ours {'x'.join(map(str, tile))} {threads} {stages}{' known sizes' if shape else ''}"
                found[who] = (product_programs.sparse_gemm(name, name, tile, threads, stages, shape=shape),
                              lambda t: (t["v"], t["p"], t["x"], t["out"]))
        return found

    def peers(self, t):
        def dense(t):
            torch.mm(t["w"], t["x"].t(), out=t["out"])

        def semi_structured(t, library):
            if isinstance(t.get(library), Exception):
                raise t[library]
            return {"out": torch.mm(t[library], t["x"].t())}
        return {"cublas, dense": dense} | {f"torch semi-structured, {library}": lambda t, library=library: semi_structured(t, library)
                                           for library in LIBRARIES}


CASES = {f"sparse_{str(dtype)[6:]}_{m}x{n}x{k}": Sparse(m, n, k, dtype) for dtype in NAMES
         for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 256, 4096))}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
