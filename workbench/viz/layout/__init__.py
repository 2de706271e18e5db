"""Layered pictures of graphs: `arrange` for a graph, `follow` for its next state."""

from workbench.viz.layout.arrange import Branch, Layout, Spacing, arrange
from workbench.viz.layout.follow import came_from, follow
from workbench.viz.layout.layered import Layered, layered
from workbench.viz.layout.routes import path_text

__all__ = [
    "Branch",
    "Layered",
    "Layout",
    "Spacing",
    "arrange",
    "came_from",
    "follow",
    "layered",
    "path_text",
]
