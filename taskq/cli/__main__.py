"""`python -m taskq.cli`: the command line where the `taskq` script isn't on PATH, as for the processes we start."""

from taskq.cli.main import main

if __name__ == "__main__":
    main()
