"""The node: the process that `taskq worker APP` starts, and the workers it supervises.

The node spawns workers, renews their leases, returns what a dead one held and runs the slow loops of the queues it
serves. It never imports user code: what it knows of APP, its first worker told it in its hello.

Its rooms: `worker`, the process that claims and runs; `children`, the workers as the node sees them; `sweeps`, the
loops of every node; `leader`, those of the one that leads. Beside them lies what they share, and `run`, which puts it
together.
"""
