"""`python -m taskq`: the command line, where the `taskq` script isn't on PATH."""

from taskq.cli.main import main

if __name__ == "__main__":
    main()
