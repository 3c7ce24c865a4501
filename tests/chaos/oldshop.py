"""The app `shop` as it was before it got most of its tasks: what a node runs that hasn't been deployed anew yet."""

from taskq import TaskQ
from tests.ledger import note

app = TaskQ()


@app.task(name="shop.quick")
async def quick() -> None:
    note("start")
