"""What taskq costs and how fast it is: `make bench`. Each row stands beside a reference from the same run."""
