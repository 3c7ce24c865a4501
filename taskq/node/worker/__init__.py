"""The worker: the process that claims jobs, runs them and tells how they ended. Its node starts it, and nobody else.

`claimer` takes jobs, `desk` holds them, `pipeline` runs one, `committer` tells Redis; `process` puts them together.
"""
