"""SHUT-07: jobs fork. Their children use the app, their worker goes on, and neither gets the other's answers."""


def test_jobs_that_fork(fleet, shop, ledger, look):
    node = fleet.start("-c", "4", "--threads", "4")
    before = node.workers()
    tasks = (shop.forks, shop.forks_on_the_loop)
    sides = {f"{task.name.rpartition('.')[2]}{n}": task for task in tasks for n in range(3)}
    jobs = {side: task.enqueue(side) for side, task in sides.items()}
    for side, job in jobs.items():
        assert job.result(timeout=30) == f"{side} 0"
    added = [f"default:{side}{child}-{n}" for side in sides for child in ("", "-child") for n in range(20)]
    look.until([shop.app.job(id) for id in added], "completed", 20)
    assert len(ledger.starts()) == len(added)
    assert node.workers() == before
