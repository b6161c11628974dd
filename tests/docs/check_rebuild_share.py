"""A new op row or diagnostic compiles less than half of the library anew: fewer sources than that include the
table, in any depth.   check_rebuild_share.py SOURCE"""
import functools
import pathlib
import re
import sys

src = pathlib.Path(sys.argv[1]) / "src"
TABLES = ("ir/ops.def", "support/diagnostics.def")


@functools.cache
def included(name):
    """Files of the library that the file includes, itself among them."""
    path = src / name
    if not path.exists():
        return frozenset()
    found = {name}
    for other in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
        found |= included(other)
    return frozenset(found)


sources = sorted(str(path.relative_to(src)) for path in src.rglob("*.cpp"))
assert len(sources) > 300, f"only {len(sources)} sources"
for table in TABLES:
    users = sum(table in included(name) for name in sources)
    assert 0 < users < len(sources) / 2, f"{users} of {len(sources)} sources include {table}"
    print(f"{table}: {users} of {len(sources)} sources")
