"""The lessons of the course: number, question, minutes, and where their GPU numbers come from."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.errors import check_choice


@dataclass(frozen=True)
class LessonEntry:
    """One lesson: its number, the question in its title, and about how long it takes to work through.

    compared holds the labels of the sweeps over n by which the machines of a class are compared.
    """

    number: str
    question: str
    minutes_cpu: int
    minutes_gpu: int
    gpu_part: str
    compared: tuple[str, ...] = ()


LESSONS = {
    entry.number: entry
    for entry in (
        LessonEntry("00", "What is in this machine?", 20, 20, "cores, lanes and memory of a GPU"),
        LessonEntry("01", "Is a GPU faster than a CPU?", 60, 60, "latency, sweeps, bandwidth and transfers", ("add",)),
        LessonEntry(
            "02",
            "How does matrix multiplication scale?",
            60,
            60,
            "time against size, dtypes, roofline",
            ("torch", "matmul"),
        ),
        LessonEntry("03", "Can I train a CNN on a CPU?", 75, 75, "training steps, and the times they add up to"),
        LessonEntry("04", "What is shared memory for?", 90, 90, "kernel times and the library's product"),
        LessonEntry("05", "Will a GPU-trained model run on my CPU?", 75, 75, "answers, latency and throughput"),
        LessonEntry("06", "Who feeds the GPU?", 60, 60, "a training step, and the way of a batch to the GPU"),
    )
}


def find_lesson(number: str) -> LessonEntry:
    """Return the lesson of that number. Raises InputError that lists the known ones.

    >>> find_lesson("01").question
    'Is a GPU faster than a CPU?'
    """
    return LESSONS[check_choice("lesson", number, LESSONS)]
