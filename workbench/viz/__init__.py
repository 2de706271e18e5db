"""The workbench: `explore(tensor)`, its page and its pictures."""

from workbench.viz.exploration.exploration import Exploration as Exploration
from workbench.viz.exploration.explore import explore as explore
