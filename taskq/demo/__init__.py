"""`taskq demo`: real jobs over the files of a real tree, a worker killed half way, the totals checked at the end."""
