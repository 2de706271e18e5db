"""What the chapters use beside workbench itself: predictions, exercises, pictures."""

from course.ask import Prediction, Verdict, predict, right, wrong
from course.look import cache_sets, inner_loop, nest, spills, table
from course.pictures import Picture, bars, curve, roofline
from course.race import Race, race

__all__ = [
    "Picture",
    "Prediction",
    "Race",
    "Verdict",
    "bars",
    "cache_sets",
    "curve",
    "inner_loop",
    "nest",
    "predict",
    "race",
    "right",
    "roofline",
    "spills",
    "table",
    "wrong",
]
