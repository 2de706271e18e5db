"""The ratios of a Report as an SVG of our own: a dot per library and row, on a log scale."""

from __future__ import annotations

import math
from html import escape

from workbench.bench.report import Report

# margins, and the height of a row, in pixels
LEFT = 190
RIGHT = 30
TOP = 64
STEP = 22
WIDTH = 860
COLOURS = ("#0072b2", "#d55e00", "#cc79a7", "#009e73", "#e69f00")  # Okabe and Ito 2008
RADIUS = 4.5


def svg(report: Report) -> str:
    """Return a picture of our time over each peer's: left of the line at 1 we are faster."""
    ratios = {peer: report.ratios(peer) for peer in report.peers}
    present = [r for row in ratios.values() for r in row.values()]
    low = min(-1, math.floor(math.log10(min(present, default=1))))
    high = max(1, math.ceil(math.log10(max(present, default=1))))
    height = TOP + STEP * len(report.rows) + 12

    def x(ratio: float) -> float:
        share = (math.log10(ratio) - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18">time of workbench over the time of each library</text>',
    ]
    for power in range(low, high + 1):
        at, colour = x(10.0**power), "#444" if power == 0 else "#ddd"
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{height - 12}"'
            f' stroke="{colour}"/>'
            f'<text x="{at:.1f}" y="{TOP - 14}" text-anchor="middle">{10.0**power:g}</text>'
        )
    for number, row in enumerate(report.rows):
        y = TOP + STEP * number + 8
        parts.append(
            f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>'
        )
        for peer, colour in zip(report.peers, COLOURS, strict=False):
            if row.name in ratios[peer]:
                ratio = ratios[peer][row.name]
                parts.append(
                    f'<circle cx="{x(ratio):.1f}" cy="{y}" r="{RADIUS}" fill="{colour}"'
                    f' fill-opacity="0.8"><title>{escape(peer)}: {ratio:.2f}</title></circle>'
                )
    parts += _legend(report)
    return "\n".join([*parts, "</svg>", ""])


def _legend(report: Report) -> list[str]:
    parts = []
    for number, (peer, colour) in enumerate(zip(report.peers, COLOURS, strict=False)):
        at = LEFT + 110 * number
        parts.append(
            f'<circle cx="{at + RADIUS}" cy="32" r="{RADIUS}" fill="{colour}"/>'
            f'<text x="{at + 14}" y="36">{escape(peer)}</text>'
        )
    return parts
