"""Draws a chart as SVG: panels of horizontal bars in groups, values after the bars, an axis of the unit
below and one of the fraction of the limit above. The same chart always gives the same text.

Coordinates are pixels. Widths of text are estimates from above: what does not overlap here overlaps nowhere.
"""

from typing import List, NamedTuple, Optional
from xml.sax.saxutils import escape

WIDTH = 860
MARGIN = 16
PLOT_LEFT, PLOT_RIGHT = 258, 716
BAR, PITCH, LINE = 11, 15, 14
SMALL, NORMAL, LARGE = 11, 12, 17
FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
INK, SOFT, GRID, LIMIT, PAPER = "#1c2430", "#56606e", "#e3e7ec", "#b3261e", "#ffffff"
COLOURS = {
    "ours": "#1a5fb4",
    "any sizes": "#7fb0ea",
    "cuBLAS": "#c7742c",
    "cuBLASLt": "#dba94a",
    "Triton": "#3f8f6b",
    "cuDNN": "#c7742c",
    "FlashAttention-2": "#6b7a88",
    "memory-efficient": "#9a5ba5",
    "PyTorch": "#9a5ba5",
    "copy": "#8a939c",
    "memcpy": "#8a939c",
    "OpenBLAS": "#c7742c",
    "oneDNN": "#c7742c",
    "the driver": "#8a939c",
}


class Bar(NamedTuple):
    who: str
    value: float
    text: str  # the value with its unit


class Group(NamedTuple):
    label: str
    bars: List[Bar]


class Panel(NamedTuple):
    title: str
    unit: str
    groups: List[Group]
    limit: Optional[float] = None
    limit_name: str = ""
    fractions: bool = True  # an axis of the fraction of the limit


class Chart(NamedTuple):
    name: str  # of the file, without .svg
    title: str
    alt: str
    panels: List[Panel]


class Box(NamedTuple):
    """Where a text is, at most."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


def text_width(text, size, bold=False):
    def em(c):
        if c in "ijl.,:;'|!":
            return 0.40
        if c in " ()ftr-/":
            return 0.44
        return 0.95 if c in "mwMW%@" else 0.75 if c.isupper() else 0.64

    return sum(map(em, text)) * size * (1.1 if bold else 1.0)


def wrapped(text, width, size, bold=False):
    """Lines of words, each within the width where its words are; a new line of the text begins one."""
    if "\n" in text:
        return [line for part in text.split("\n") for line in wrapped(part, width, size, bold)]
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size, bold) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def ticks(most):
    """Round numbers from 0 to at most `most`: five to nine steps."""
    step = 1e-3
    while True:
        for factor in (1, 2, 5):
            if most / (step * factor) <= 8:
                count = int(most / (step * factor) + 1e-9)
                return [round(step * factor * i, 6) for i in range(count + 1)]
        step *= 10


class Canvas:
    def __init__(self):
        self.parts, self.boxes = [], []

    def rect(self, x, y, width, height, fill, extra=""):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{extra}/>'
        )

    def line(self, x1, y1, x2, y2, stroke, extra=""):
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"{extra}/>'
        )

    def text(self, x, y, text, size=SMALL, fill=INK, anchor="start", bold=False, paper=False):
        """`y` is the base line; `paper` hides the lines after the text."""
        width = text_width(text, size, bold)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self.boxes.append(Box(left, y - 0.8 * size, left + width, y + 0.22 * size, text))
        if paper:
            self.rect(left - 2, y - 0.9 * size, width + 2, 1.15 * size, PAPER)
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>'
            f"{escape(text)}</text>"
        )


def draw_axes(canvas, panel, top, bottom, scale, most):
    if panel.limit and panel.fractions:
        for x in (PLOT_LEFT - 8, WIDTH - MARGIN):
            canvas.text(x, top - 5, "of the limit", fill=LIMIT, anchor="end")
        for quarter in range(1, 5):
            x = PLOT_LEFT + scale * panel.limit * quarter / 4
            canvas.line(x, top - 3, x, top, LIMIT)
            canvas.text(x, top - 5, f"{quarter / 4:.2f}", fill=LIMIT, anchor="middle")
    for value in ticks(most):
        x = PLOT_LEFT + scale * value
        canvas.line(x, top, x, bottom, GRID if value else SOFT)
        canvas.text(x, bottom + 14, f"{value:g}", fill=SOFT, anchor="middle")
    canvas.text(PLOT_LEFT - 8, bottom + 14, panel.unit, fill=SOFT, anchor="end")
    if panel.limit:
        x = PLOT_LEFT + scale * panel.limit
        canvas.line(x, top, x, bottom, LIMIT, ' stroke-width="1.5" stroke-dasharray="5 3"')


def draw_panel(canvas, panel, y):
    """The panel below y; returns where it ends."""
    canvas.text(MARGIN, y + 14, panel.title, size=NORMAL, bold=True)
    y += 24
    if panel.limit:
        canvas.line(MARGIN, y + 4, MARGIN + 18, y + 4, LIMIT, ' stroke-width="1.5" stroke-dasharray="5 3"')
        canvas.text(MARGIN + 24, y + 8, panel.limit_name, fill=LIMIT)
        y += 18
    top = y + (18 if panel.limit and panel.fractions else 4)
    alone = all(len(group.bars) == 1 for group in panel.groups)
    names = 0 if alone else max(text_width(bar.who, SMALL) for group in panel.groups for bar in group.bars)
    label_width = PLOT_LEFT - MARGIN - 16 - names
    labels = [wrapped(group.label, label_width, NORMAL, True) for group in panel.groups]
    heights = [
        max(len(group.bars) * PITCH, len(lines) * LINE) + 9 for group, lines in zip(panel.groups, labels)
    ]
    bottom = top + sum(heights)
    most = max([bar.value for group in panel.groups for bar in group.bars] + [panel.limit or 0])
    scale = (PLOT_RIGHT - PLOT_LEFT) / most
    draw_axes(canvas, panel, top, bottom, scale, most)
    y = top
    for group, lines, height in zip(panel.groups, labels, heights):
        middle = y + height / 2
        for i, line in enumerate(lines):
            canvas.text(MARGIN, middle + LINE * (i - len(lines) / 2) + 11, line, size=NORMAL, bold=True)
        bar_y = middle - PITCH * len(group.bars) / 2 + (PITCH - BAR) / 2
        for bar in group.bars:
            if not alone:
                canvas.text(
                    PLOT_LEFT - 8, bar_y + 9.5, bar.who, fill=INK if bar.who == "ours" else SOFT, anchor="end"
                )
            length = scale * bar.value
            canvas.text(PLOT_LEFT + length + 5, bar_y + 9.5, bar.text, bold=bar.who == "ours", paper=True)
            canvas.rect(PLOT_LEFT, bar_y, length, BAR, COLOURS[bar.who])
            if panel.limit and panel.fractions:
                canvas.text(
                    WIDTH - MARGIN,
                    bar_y + 9.5,
                    f"{bar.value / panel.limit:.2f}",
                    fill=LIMIT,
                    anchor="end",
                    bold=bar.who == "ours",
                )
            bar_y += PITCH
        y += height
        if group is not panel.groups[-1]:
            canvas.line(MARGIN, y, PLOT_LEFT, y, GRID)
    return bottom + 30


def drawn(chart):
    """The chart's SVG and the boxes of its texts."""
    canvas = Canvas()
    canvas.text(MARGIN, 30, chart.title, size=LARGE, bold=True)
    y = 44
    for panel in chart.panels:
        y = draw_panel(canvas, panel, y)
    title, alt = escape(chart.title), escape(chart.alt)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:.0f}" '
        f'viewBox="0 0 {WIDTH} {y:.0f}" role="img" font-family="{FONT}">\n'
        f"<title>{title}</title>\n<desc>{alt}</desc>\n"
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{y - 1:.0f}" rx="6" fill="{PAPER}" '
        f'stroke="#c9d0d8"/>\n'
    )
    return head + "\n".join(canvas.parts) + "\n</svg>\n", canvas.boxes


def layout_faults(chart):
    """Texts that overlap or leave the picture."""
    text, boxes = drawn(chart)
    height = float(text.split('height="', 1)[1].split('"', 1)[0])
    faults = [
        f"{chart.name}: '{b.text}' leaves the picture"
        for b in boxes
        if b.left < 4 or b.right > WIDTH - 4 or b.top < 4 or b.bottom > height - 4
    ]
    for i, a in enumerate(boxes):
        faults += [
            f"{chart.name}: '{a.text}' overlaps '{b.text}'"
            for b in boxes[i + 1 :]
            if a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom
        ]
    return faults
