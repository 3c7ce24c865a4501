# A worker's image: taskq and uvloop. Your code is mounted, or copied in an image built on this one, at /app.
FROM python:3.12-slim

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY lua lua
COPY taskq taskq
RUN pip install --no-cache-dir '.[uvloop]' && rm -rf /src && useradd --create-home taskq

WORKDIR /app
USER taskq
# The node drains on SIGTERM: running jobs get their grace, the rest go back to their queue.
STOPSIGNAL SIGTERM
ENTRYPOINT ["taskq"]
CMD ["--help"]
