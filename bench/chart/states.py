"""Programs of state space models beside the time in which a copy moves their bytes."""

from chart.family import Family, Table, bars, figures
from chart.svg import Chart, Group, Panel

FORMS = {"scan": "chunk scan", "state": "chunk state"}


def states(results):
    """The fastest tile of each way in which vectors reach the threads."""
    panels, lines = [], []
    for form, name in FORMS.items():
        groups = []
        for row in results["mamba"]["rows"]:
            case, batch, length = row["case"].split("_")
            if case != form:
                continue
            best = {
                way: min(us for who, us in row["us"].items() if who.endswith(way)) for way in ("shared", "direct")
            }
            tile = min(row["us"], key=row["us"].get).split()[1:-1]
            what = f"batch {batch[1:]}, length {length[1:]}"
            floor = row["floor_us"]
            groups.append(Group(what, bars("of the floor", {"ours": floor / min(best.values())}, 2)))
            cells = figures(floor, best["shared"], best["direct"], digits=1)
            lines.append([f"{name}, {what}", *cells, *figures(floor / min(best.values()), digits=2), " ".join(tile)])
        panels.append(Panel(name, "of the floor", groups, 1, "the floor: a copy of as many bytes"))
    alt = "Chunk scan and chunk state of Mamba-2 on an H200, as fractions of a copy's speed"
    chart = Chart("states", "Mamba-2 on an H200", alt, panels)
    head = ["program", "floor, us", "vectors through shared memory, us", "vectors into registers, us", "of the floor", "tile"]
    return Family("states", chart, [Table(head, lines)])
