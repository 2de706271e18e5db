"""Looking: `explore(tensor)` and its pictures."""

from workbench.viz.exploration import Exploration as Exploration
from workbench.viz.explore import explore as explore
