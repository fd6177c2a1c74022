"""The names of weights: what wrappers put in front of them, and how to take it off again.

torch.nn.DataParallel and DistributedDataParallel keep the net under the name "module", torch.compile under "_orig_mod".
A file saved from the wrapper has these segments in its names, alone, nested in any order, or inside the net.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from labkit.units import count_of

WRAPPERS = {
    "module": "torch.nn.DataParallel or DistributedDataParallel",
    "_orig_mod": "torch.compile",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
}


def bare(name: str) -> str:
    """Return a name without any wrapper's segment.

    >>> bare("module._orig_mod.body._orig_mod.weight")
    'body.weight'
    """
    *path, last = name.split(".")
    return ".".join([*(segment for segment in path if segment not in WRAPPERS), last])


def bare_names(names: Iterable[str]) -> dict[str, str]:
    """Return the bare name of each name. Where two would become one, a part of the net has a wrapper's name: keep all.

    >>> bare_names(["module.a.w", "module.b"])
    {'module.a.w': 'a.w', 'module.b': 'b'}
    >>> bare_names(["module.w", "w"])
    {'module.w': 'module.w', 'w': 'w'}
    """
    found = {name: bare(name) for name in names}
    return found if len(set(found.values())) == len(found) else {name: name for name in found}


def matched(names: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Return for each name of a file the name that the model uses for it, or the bare name where it has none.

    Equal names come first. Then wrappers are taken off on both sides: the model may be wrapped, too. Last, all names of
    the model may stand in the file behind one more segment, such as "model." or "backbone.encoder.".
    """
    names, wanted = list(names), list(wanted)
    if set(names) >= set(wanted):
        return {name: name for name in names}
    of_model = {short: name for name, short in bare_names(wanted).items()}
    of_file = bare_names(names)
    found = {name: of_model.get(short, short) for name, short in of_file.items()}
    if of_model.keys().isdisjoint(of_file.values()):
        prefix = _prefix(of_file.values(), of_model)
        found = {name: of_model.get(short.removeprefix(prefix), short) for name, short in of_file.items()}
    return found if _hits(found.values(), wanted) > _hits(names, wanted) else {name: name for name in names}


def _hits(names: Iterable[str], wanted: Iterable[str]) -> int:
    return len(set(names) & set(wanted))


def _prefix(names: Iterable[str], wanted: Iterable[str]) -> str:
    """Return what stands in front of most of the wanted names, with its dot; "" if nothing does."""
    names, wanted = list(names), set(wanted)
    fronts: Counter[str] = Counter()
    for name in names:
        segments = name.split(".")
        for cut in range(1, len(segments)):
            if ".".join(segments[cut:]) in wanted:
                fronts[".".join(segments[:cut]) + "."] += 1
    return fronts.most_common(1)[0][0] if fronts else ""


def notes_on(renamed: Mapping[str, str]) -> list[str]:
    """Say what was taken off the names or put before them, and on how many: one note for each wrapper.

    >>> notes_on({"module.a.w": "a.w", "b": "b"})
    ['"module." taken off 1 name: torch.nn.DataParallel or DistributedDataParallel puts it there.']
    """
    off, on = Counter[str](), Counter[str]()
    for name, new in renamed.items():
        before, after = Counter(name.split(".")), Counter(new.split("."))
        lost = before - after
        off.update(segment for segment in WRAPPERS if segment in lost)
        on.update(segment for segment in WRAPPERS if segment in after - before)
        if front := ".".join(segment for segment in name.split(".") if segment in lost and segment not in WRAPPERS):
            off[front] += 1
    notes = []
    for front, count in off.items():
        why = f"{WRAPPERS[front]} puts it there" if front in WRAPPERS else "the model was a part of something larger"
        notes.append(f'"{front}." taken off {count_of(count, "name")}: {why}.')
    return notes + [
        f'"{front}." put before {count_of(count, "name")}: the model is wrapped.' for front, count in on.items()
    ]
