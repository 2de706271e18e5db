"""The workbench: `explore(tensor)`, its page and its pictures."""

from workbench.viz.exploration import Exploration as Exploration
from workbench.viz.explore import explore as explore
