"""What a claim is, what a verdict can say, and the register that joins a claim to the rule that decides it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from labkit.comparison import weakest_source
from labkit.errors import InputError, check_choice, check_kind, check_number, check_text
from labkit.measurement import SOURCES, Measurement, Sweep

UPHELD, REFUTED, DEPENDS, NOT_TESTABLE = "upheld", "refuted", "it depends", "not testable here"
OUTCOMES = (UPHELD, REFUTED, DEPENDS, NOT_TESTABLE)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the numbers say about a claim.

    sentence holds the numbers that decided it; flips_at the condition and the point where the answer changes (for "it
    depends") or what would be needed (for "not testable here"); number is the deciding number that a prediction can
    be compared with; source the weakest source among the numbers.
    """

    outcome: str
    sentence: str
    flips_at: str = ""
    number: float | None = None
    source: str = "measured"
    claim_id: str = ""

    def __post_init__(self) -> None:
        check_choice("outcome", self.outcome, OUTCOMES)
        check_choice("source", self.source, SOURCES)
        check_text("sentence", self.sentence)
        check_text("flips_at", self.flips_at, empty_ok=True)
        if self.number is not None:
            check_number("number", self.number)
        if self.outcome in (DEPENDS, NOT_TESTABLE) and not self.flips_at:
            raise InputError(f"outcome={self.outcome!r}", "this verdict must say where it flips or what it would need")

    @property
    def headline(self) -> str:
        """The outcome; a number that was not measured here never gives more than "predicted: …" or "recorded: …"."""
        if self.source == "measured" or self.outcome == NOT_TESTABLE:
            return self.outcome
        return f"{self.source}: {self.outcome}"

    def __str__(self) -> str:
        condition = f" {self.flips_at}" if self.flips_at else ""
        return f"{self.headline.upper()}. {self.sentence}{condition}"


@dataclass(frozen=True)
class Claim:
    """A claim on trial: its id, the statement in our words, the lessons that try it, and the rule that decides it."""

    id: str
    statement: str
    lessons: tuple[str, ...]
    rule: Callable[..., Verdict]

    def decide(self, **evidence: Any) -> Verdict:
        """Return the verdict on this evidence. Raises InputError if the evidence is not what the rule needs."""
        try:
            inspect.signature(self.rule).bind(**evidence)
        except TypeError as problem:
            wanted = ", ".join(inspect.signature(self.rule).parameters)
            given = f"evidence {', '.join(evidence) or 'nothing'} for {self.id!r}"
            raise InputError(given, f"the rule cannot use it ({problem})", f"It needs: {wanted}.") from problem
        _check_kinds(self.rule, evidence)
        verdict = self.rule(**evidence)
        sentence = " ".join([verdict.sentence, *_caveats(evidence)])
        return Verdict(**{**verdict.__dict__, "sentence": sentence, "claim_id": self.id})


_CLAIMS: dict[str, Claim] = {}


def _check_kinds(rule: Callable[..., Verdict], evidence: Mapping[str, Any]) -> None:
    """Raise InputError where a rule's annotation asks for measurements, or a mapping, and the evidence is none."""
    for name, hint in get_type_hints(rule).items():
        options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        kinds = {get_origin(option) or option: get_args(option) for option in options}
        if name not in evidence or not kinds.keys() & {Measurement, Sweep, Mapping}:
            continue
        value = evidence[name]
        if not isinstance(value, tuple(kinds)):
            wanted = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
            raise InputError(f"{name}={value!r:.80}", f"the rule needs {wanted} here")
        if kinds.get(Mapping, ())[1:] == (Measurement,) and value is not None:
            for key, inside in value.items():
                check_kind(f"{name}[{key!r}]", inside, Measurement)


def _caveats(evidence: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each piece of evidence whose time cannot be believed."""
    pieces = [piece for it in evidence.values() for piece in (it.values() if isinstance(it, Mapping) else [it])]
    doubtful = [piece for piece in pieces if isinstance(piece, Measurement) and piece.implausible]
    return [f"Beware, the time of {it.task} is implausible: {it.implausible}." for it in doubtful]


def claim(id: str, statement: str, *lessons: str) -> Callable[[Callable[..., Verdict]], Callable[..., Verdict]]:
    """Register the decorated function as the rule that decides this claim."""

    def register(rule: Callable[..., Verdict]) -> Callable[..., Verdict]:
        _CLAIMS[id] = Claim(id, statement, lessons, rule)
        return rule

    return register


def find_claim(id: str) -> Claim:
    """Return the claim with this id. Raises InputError that lists the known ones."""
    return _CLAIMS[check_choice("claim", id, _CLAIMS)]


def all_claims(lesson: str | None = None) -> tuple[Claim, ...]:
    """Return all claims, or those that the named lesson tries."""
    return tuple(c for c in _CLAIMS.values() if lesson is None or lesson in c.lessons)


def needs_gpu(sentence: str) -> Verdict:
    """Return the verdict for a trial that lacks a GPU and has no number to stand in for one."""
    need = "It needs a GPU that PyTorch can use; run the lesson on a machine with one, for example on Colab."
    return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=need)


def gpu_name(found: Measurement | Sweep) -> str:
    """Return what a sentence calls the GPU that a number belongs to: "T4", or "GPU" where it has no name."""
    measurement = found.measurements[0] if isinstance(found, Sweep) else found
    return measurement.device_name or "GPU"


def source_of(*numbers: Measurement | Sweep) -> str:
    """Return the weakest source among measurements and sweeps."""
    return weakest_source(*(m for n in numbers for m in (n.measurements if isinstance(n, Sweep) else (n,))))
