"""Locks: README's block, with a store that checks the fence."""

from __future__ import annotations

import pytest

from tests.guide.app import app
from tests.guide.test_readme import blocks


class Store:
    """Refuses what comes with a lower fence than it has seen."""

    def __init__(self) -> None:
        self.fences: dict[str, int] = {}
        self.texts: dict[str, str] = {}

    def write(self, key: str, text: str, *, fence: int) -> None:
        if fence < self.fences.get(key, 0):
            raise ValueError("somebody else has written since")
        self.fences[key] = fence
        self.texts[key] = text


def test_the_block_in_readme_writes_with_its_fence() -> None:
    store = Store()
    block = next(body for body in blocks("python") if "app.lock" in body)
    for _ in range(2):
        names = {"app": app, "store": store}
        exec(block, names)  # noqa: S102 (README is run, not believed)
        assert store.texts == {"report": "text"}
        assert store.fences["report"] == names["lock"].fence  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="written since"):
        store.write("report", "late", fence=store.fences["report"] - 1)
