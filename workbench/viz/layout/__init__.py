"""The layered layout of the still picture of a tensor graph. The page lays out its own graphs
(`workbench/viz/static/layout/`), because looking needs no Python."""

from workbench.viz.layout.layered import Layered, layered

__all__ = ["Layered", "layered"]
