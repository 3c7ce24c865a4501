"""The guide's application, as in a project of several modules: made here, and the workers import the rest."""

from taskq import TaskQ

app = TaskQ(namespace="guide", include=["tests.guide.test_*"])
