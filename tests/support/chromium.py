"""Find a Chromium that Playwright can drive, or say how to get one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
ADVICE = {
    "linux": "On Debian or Ubuntu: sudo apt-get install chromium. On Fedora: sudo dnf install chromium.",
    "darwin": "On macOS: brew install --cask google-chrome, or install Google Chrome by hand.",
    "win32": "On Windows: winget install Google.Chrome; Microsoft Edge will do as well.",
}


def find_chromium() -> str | None:
    """Return the path of Chromium, Chrome or Edge: LABKIT_CHROMIUM if it is set, else the first one found."""
    asked = os.environ.get("LABKIT_CHROMIUM")
    if asked:
        return shutil.which(asked)
    on_path = (shutil.which(name) for name in NAMES)
    return next(filter(None, on_path), None) or next((place for place in PLACES if Path(place).exists()), None)


def how_to_get_chromium() -> str:
    """Return one sentence that says what is missing and how this system gets it."""
    advice = ADVICE.get(sys.platform, ADVICE["linux"])
    return f"No Chromium was found here. {advice} Or name one: LABKIT_CHROMIUM=/path/to/it make browser"


def browser_is_required() -> bool:
    """Tell whether a missing browser is a failure (LABKIT_REQUIRE_BROWSER=1) or only a reason to skip."""
    return os.environ.get("LABKIT_REQUIRE_BROWSER", "0") not in ("", "0")
