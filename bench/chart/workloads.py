"""The paper's further workloads beside the best of PyTorch's operators and of kernels in Triton."""

from chart.family import Family, Table, figures

TITLES = {
    "attention_backward": "attention, backward",
    "narrow_attention": "attention of 8-bit floats",
    "block_scaled_gemm": "products of 8-bit floats with scales of blocks",
    "latent_attention": "attention over latent keys",
    "paged_decode": "few queries, keys in pages",
    "int4_gemm": "products with 4-bit weights",
    "sparse_gemm": "products with 2:4 sparse weights",
    "grouped_gemm": "grouped products",
    "conv2d": "convolution, 2-D",
    "linear_attention": "retention",
}


def best(row, ours):
    """(name, milliseconds) of the fastest of ours, or of the peers."""
    found = {who: ms for who, ms in row["ms"].items() if who.startswith("ours") == ours}
    return min(found.items(), key=lambda pair: pair[1]) if found else (None, None)


def workloads(results):
    unknown = {row["name"] for row in results["workloads"]["rows"] if row["workload"] not in TITLES}
    assert not unknown, f"rows of no workload that has a table: {sorted(unknown)}"
    tables = []
    head = ["case", "ours", "tile, threads, stages", "best peer", "its rate", "ours to it"]
    for workload, title in TITLES.items():
        lines = []
        rows = [row for row in results["workloads"]["rows"] if row["workload"] == workload]
        units = {row["unit"] for row in rows}
        for row in rows:
            (who, ms), (peer, peer_ms) = best(row, True), best(row, False)
            rate = lambda name: row["rates"][name] if name else None
            ratio = peer_ms / ms if peer_ms and ms else None
            cells = [*figures(rate(who)), " ".join(who.split()[1:]) if who else "", peer or "", *figures(rate(peer)), *figures(ratio, digits=2)]
            lines.append([row["name"] + (f", {row['unit']}" if len(units) > 1 else ""), *cells])
        if not lines:
            continue
        tables.append(Table([f"{title}, {units.pop()}" if len(units) == 1 else title, *head[1:]], lines))
    return Family("workloads", None, tables)
