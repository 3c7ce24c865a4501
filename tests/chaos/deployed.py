"""An app whose versions declare different rules of the same schedule: TASKQ_TEST_EVERY says which version this is."""

import os

from taskq import TaskQ
from tests.ledger import note

app = TaskQ()


@app.every(os.environ["TASKQ_TEST_EVERY"], name="each", missed="all")
@app.task(name="shop.quick")
async def quick() -> None:
    note("start")
