"""The metadata of a safetensors file: texts only, so that other values are written as JSON and marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labkit.errors import InputError

MARK = "labkit"


def mark(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as texts: a text as it is, all else as JSON under a key that MARK names.

    >>> mark({"epoch": 3, "name": "digits"})
    {'epoch': '3', 'name': 'digits', 'labkit': '["epoch"]'}
    """
    texts = {}
    for key, value in metadata.items():
        if not isinstance(key, str) or key == MARK:
            raise InputError(f"metadata[{key!r}]", f"in a safetensors file a key is a text other than {MARK!r}")
        try:
            texts[key] = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as problem:
            advice = "Give numbers, texts and lists of them, or save as .pt."
            raise InputError(f"metadata[{key!r}]", f"a safetensors file cannot hold it ({problem})", advice) from None
    coded = [key for key, value in metadata.items() if not isinstance(value, str)]
    return texts | {MARK: json.dumps(coded)}


def unmark(texts: Mapping[str, str]) -> tuple[dict[str, Any], bool]:
    """Return the metadata that mark wrote, and whether it was written by mark at all.

    >>> unmark({"epoch": "3", "name": "digits", "labkit": '["epoch"]'})
    ({'epoch': 3, 'name': 'digits'}, True)
    """
    others = {key: value for key, value in texts.items() if key != MARK}
    try:
        coded = json.loads(texts[MARK])
        return {key: json.loads(value) if key in coded else value for key, value in others.items()}, True
    except (KeyError, ValueError, TypeError):
        return dict(texts), False
