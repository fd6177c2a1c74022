"""What stays folded until the student has predicted: a verdict with its figure and numbers, or a count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.claims import Claim, Verdict
from labkit.html import escape, folded, html_of
from labkit.measurement import NOISY_SPREAD, Measurement, Sweep
from labkit.units import format_ratio

SUMMARY = "Verdict: open it once you have committed to a prediction"
COUNT_SUMMARY = "The count: open it once you have committed to a prediction"


class FoldedView:
    """Shows something folded. When the student commits to a prediction later, what stands here is drawn anew."""

    def __init__(self, prediction: Callable[[], Mapping[str, Any] | None]) -> None:
        self._prediction = prediction
        self._handle: Any = None

    def _compared(self, number: float | None) -> str:
        """Return the prediction beside the number that was found."""
        prediction = self._prediction()
        if not prediction:
            return "You made no prediction."
        distance = distance_in_words(prediction["value"], number)
        said = (
            f"You predicted {prediction['text']}; that is {distance}."
            if distance
            else f"You predicted: {prediction['text']}."
        )
        changed = prediction.get("first", prediction["text"]) != prediction["text"]
        return f"{said} Before the verdict was there, you had predicted {prediction['first']}." if changed else said

    def refresh(self) -> None:
        """Draw the view anew where it is shown."""
        if self._handle is not None:
            self._handle.update(_Shown(self))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._handle = display(_Shown(self), display_id=True)


class VerdictView(FoldedView):
    """A folded verdict with its figure, the claim, the numbers and the student's prediction."""

    def __init__(
        self,
        claim: Claim,
        verdict: Verdict,
        figure: Any,
        prediction: Callable[[], Mapping[str, Any] | None],
        caution: str = "",
    ) -> None:
        super().__init__(prediction)
        self.claim = claim
        self._caution = caution
        self.verdict = verdict
        self._figure = _figure_html(figure)

    def __repr__(self) -> str:
        return f"{self.claim.statement} {self.verdict}"

    def _repr_html_(self) -> str:
        verdict = self.verdict
        parts = [
            self._figure,
            f"<p>The claim: “{escape(self.claim.statement)}”</p>",
            f"<p><strong>{escape(verdict.headline)}</strong></p>",
            f"<p>{escape(verdict.sentence)} {escape(verdict.flips_at)}</p>",
            f"<p>{escape(self._caution)}</p>" if self._caution else "",
            f"<p>{escape(self._compared(verdict.number))}</p>",
        ]
        return html_of(folded(SUMMARY, "".join(parts)))


class CountView(FoldedView):
    """A folded count: whatever shows it, and the student's prediction beside the number."""

    def __init__(self, content: Any, number: float | None, prediction: Callable[[], Mapping[str, Any] | None]) -> None:
        super().__init__(prediction)
        self.number = number
        self._content = _figure_html(content)

    def __repr__(self) -> str:
        return f"A count: {self.number}. {self._compared(self.number)}"

    def _repr_html_(self) -> str:
        return html_of(folded(COUNT_SUMMARY, f"{self._content}<p>{escape(self._compared(self.number))}</p>"))


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

    def __init__(self, view: FoldedView) -> None:
        self._html = view._repr_html_()
        self._text = f"{type(view).__name__} (folded; open the notebook to read it)"

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text


def noise_among(found: Iterable[Sweep | Measurement]) -> str:
    """Return a caution that names the noisiest measurement in the evidence, or "" where none is noisy."""
    measured = [m for item in found for m in (item.measurements if isinstance(item, Sweep) else (item,))]
    noisiest = max((m for m in measured if m.source == "measured"), key=lambda m: m.relative_spread, default=None)
    if noisiest is None or noisiest.relative_spread <= NOISY_SPREAD:
        return ""
    spread = f"the samples of “{noisiest.task}” spread over {noisiest.relative_spread:.0%} of their median"
    return f"NOISY: {spread}. Close other programs and run this trial again before you believe small differences."


def _figure_html(figure: Any) -> str:
    if figure is None:
        return ""
    if isinstance(figure, (list, tuple)):
        return "".join(_figure_html(part) for part in figure)
    if isinstance(figure, str) or hasattr(figure, "_repr_html_"):
        return html_of(figure)
    from labkit.plotting import to_html

    return to_html(figure)
