"""Answers to the puzzles of lesson 04, right and wrong ones; one module per few puzzles."""
