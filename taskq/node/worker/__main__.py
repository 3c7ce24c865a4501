"""`python -m taskq.node.worker`: one worker process, started by its node."""

import sys

from taskq.node.worker.process import main

sys.exit(main())
