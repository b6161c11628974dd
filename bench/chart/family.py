"""What a block of the document is made of, and what several of them say in the same way."""

from typing import List, NamedTuple, Optional

from chart.svg import Bar, Chart


class Table(NamedTuple):
    head: List[str]
    rows: List[List[str]]


class Family(NamedTuple):
    """A block of the document: a chart, where there is one, and tables."""

    name: str
    chart: Optional[Chart]
    tables: List[Table]


def limit_of(limits, dtype):
    return limits["h200"]["tflops_8_bit" if dtype in ("fp8", "int8") else "tflops_16_bit"]


def limit_text(limit):
    return f"limit: {limit} TFLOP/s, data sheet"


def bars(unit, rates, digits=0):
    """A bar for each rate by name that is known."""
    return [Bar(who, rate, f"{rate:.{digits}f} {unit}") for who, rate in rates.items() if rate]


def figures(*values, digits=0):
    """Cells; empty for what is not known."""
    return [f"{value:.{digits}f}" if value else "" for value in values]


def of_length(length, causal, batch):
    return f"{length}" + (" causal" if causal else "") + (f", batch {batch}" if batch > 1 else "")


def counted(cores):
    return "one core" if cores == 1 else f"{cores} cores"


def fastest(records, prefixes, field="ms"):
    """The record of the least time among those whose name begins so; None where there is none."""
    found = [r for r in records if r.get(field) and r["peer"].startswith(tuple(prefixes))]
    return min(found, key=lambda r: r[field]) if found else None
