"""A verdict as a notebook shows it: folded, with its figure, the claim, the numbers and the student's prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from labkit.claims import Claim, Verdict
from labkit.html import escape, folded, html_of
from labkit.units import format_ratio

SUMMARY = "Verdict: open it once you have committed to a prediction"


class VerdictView:
    """Shows a verdict folded. When the student commits to a prediction later, what stands here is drawn anew."""

    def __init__(
        self, claim: Claim, verdict: Verdict, figure: Any, prediction: Callable[[], Mapping[str, Any] | None]
    ) -> None:
        self.claim = claim
        self.verdict = verdict
        self._figure = _figure_html(figure)
        self._prediction = prediction
        self._handle: Any = None

    def __repr__(self) -> str:
        return f"{self.claim.statement} {self.verdict}"

    def _repr_html_(self) -> str:
        verdict = self.verdict
        parts = [
            self._figure,
            f"<p>The claim: “{escape(self.claim.statement)}”</p>",
            f"<p><strong>{escape(verdict.headline)}</strong></p>",
            f"<p>{escape(verdict.sentence)} {escape(verdict.flips_at)}</p>",
            f"<p>{escape(self._compared())}</p>",
        ]
        return html_of(folded(SUMMARY, "".join(parts)))

    def _compared(self) -> str:
        prediction = self._prediction()
        if not prediction:
            return "You made no prediction."
        distance = distance_in_words(prediction["value"], self.verdict.number)
        if not distance:
            return f"You predicted: {prediction['text']}."
        return f"You predicted {prediction['text']}; that is {distance}."

    def refresh(self) -> None:
        """Draw the view anew where it is shown."""
        if self._handle is not None:
            self._handle.update(_Shown(self))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._handle = display(_Shown(self), display_id=True)


def distance_in_words(predicted: Any, number: float | None) -> str:
    """Return how far a predicted number was from the verdict's, or "" where the two cannot be compared.

    >>> distance_in_words(100, 5.0), distance_in_words(5, 5.2), distance_in_words("the CPU", 5.0)
    ('20 times too high', 'within a factor of 1.2', '')
    """
    if isinstance(predicted, str) or not number or predicted <= 0 or number <= 0:
        return ""
    factor = max(predicted / number, number / predicted)
    if factor < 1.2:
        return "within a factor of 1.2"
    times = format_ratio(float(f"{factor:.2g}")).removesuffix("×")
    return f"{times} times too {'high' if predicted > number else 'low'}"


class _Shown:
    """The content of a view at one moment, without the hook that would display it once more."""

    def __init__(self, view: VerdictView) -> None:
        self._html, self._text = view._repr_html_(), repr(view)

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return "Verdict (folded; open the notebook to read it)"


def _figure_html(figure: Any) -> str:
    if figure is None:
        return ""
    if isinstance(figure, (list, tuple)):
        return "".join(_figure_html(part) for part in figure)
    if isinstance(figure, str) or hasattr(figure, "_repr_html_"):
        return html_of(figure)
    from labkit.plotting import to_html

    return to_html(figure)
