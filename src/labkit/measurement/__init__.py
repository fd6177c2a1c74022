"""What was timed (Task), how long it took (Measurement), and how that changes with size (Sweep).

These hold numbers and say where they come from. They never time anything themselves, and need no torch.
"""

from labkit.measurement.measured import NOISY_SPREAD, SAME_IN_A_MERGE, SOURCES, Measurement, legend_of
from labkit.measurement.record_format import FORMAT_VERSION
from labkit.measurement.sweep import MEASURED, OUT_OF_MEMORY, Point, Sweep, check_functions, checked_values
from labkit.measurement.task import Task

__all__ = [
    "FORMAT_VERSION",
    "MEASURED",
    "NOISY_SPREAD",
    "OUT_OF_MEMORY",
    "SAME_IN_A_MERGE",
    "SOURCES",
    "Measurement",
    "Point",
    "Sweep",
    "Task",
    "check_functions",
    "checked_values",
    "legend_of",
]
