"""Programs of state space models beside the time in which a copy moves their bytes."""

from chart.family import Family, Table, bars, figures
from chart.svg import Chart, Group, Panel

FORMS = {"scan": "chunk scan", "state": "chunk state"}


def states(results):
    """The fastest of the programs with a head a block, and of those with several."""
    panels, lines = [], []
    for form, name in FORMS.items():
        groups = []
        for row in results["mamba"]["rows"]:
            case, batch, length = row["case"].split("_")
            if case != form:
                continue
            ways = {"one": lambda who: "heads" not in who, "several": lambda who: "heads" in who}
            best = {way: min(us for who, us in row["us"].items() if is_way(who)) for way, is_way in ways.items()}
            tile = min(row["us"], key=row["us"].get).split()[1:]
            what = f"batch {batch[1:]}, length {length[1:]}"
            floor = row["floor_us"]
            groups.append(Group(what, bars("of the floor", {"ours": floor / min(best.values())}, 2)))
            cells = figures(floor, best["one"], best["several"], digits=1)
            lines.append([f"{name}, {what}", *cells, *figures(floor / min(best.values()), digits=2), " ".join(tile)])
        panels.append(Panel(name, "of the floor", groups, 1, "the floor: a copy of as many bytes"))
    alt = "Chunk scan and chunk state of Mamba-2 on an H200, as fractions of a copy's speed"
    chart = Chart("states", "Mamba-2 on an H200", alt, panels)
    head = ["program", "floor, us", "a head a block, us", "several heads a block, us", "of the floor", "tile"]
    return Family("states", chart, [Table(head, lines)])
