"""What every node does for the queues it serves, one loop a file: renew leases, reap, promote, prune.

`keeper` renews what this node's own workers run. The others are safe for anyone at any time: whoever comes second finds
nothing to do.
"""
