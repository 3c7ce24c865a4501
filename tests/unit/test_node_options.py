"""What a node may be asked for: the numbers that no command line has read are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from taskq.node.options import NodeOptions


@pytest.mark.parametrize("name", ["grace_ms", "wedged_ms"])
@pytest.mark.parametrize("wrong", [1500.5, "5000", None, True])
def test_a_time_is_a_whole_number_of_milliseconds(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name} is no whole number$"):
        NodeOptions(**{name: wrong})


def test_a_time_out_of_range_is_said_as_people_write_it() -> None:
    with pytest.raises(ValueError, match=r"^wedged=1ms is out of range: from 1s to 7d$"):
        NodeOptions(wedged_ms=1)
