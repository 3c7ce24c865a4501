"""Whether every job of a queue is in one state and in one structure, and setting it right where it isn't.

`judge` compares facts; `walk` asks for them in bounded slices, and has mended what is wrong. Neither does I/O: whoever
leads a walk sends its commands and gives it the answers.
"""

from taskq.fsck.judge import Breach
from taskq.fsck.report import Report
from taskq.fsck.walk import Step, markers, walk, walk_all

__all__ = ["Breach", "Report", "Step", "markers", "walk", "walk_all"]
