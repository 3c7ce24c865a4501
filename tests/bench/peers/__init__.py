"""Other task libraries on Redis, measured beside taskq on the same server in the same run: `make bench-peers`."""
