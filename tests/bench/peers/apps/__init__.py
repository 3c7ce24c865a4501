"""One file a library: its task, and `fill`, which enqueues as its documentation says. Runs in that library's venv."""
