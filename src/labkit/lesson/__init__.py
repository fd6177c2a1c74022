"""A lesson as it runs in a notebook: start("02") -> Lesson, which asks, measures, decides, checks and records."""

from labkit.lesson.catalogue import LESSONS, LessonEntry, find_lesson
from labkit.lesson.lesson import Lesson, start
from labkit.lesson.records import LessonRecord, results_folder

__all__ = ["LESSONS", "Lesson", "LessonEntry", "LessonRecord", "find_lesson", "results_folder", "start"]
