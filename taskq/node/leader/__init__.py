"""What one node does for all: fire schedules, relay, scale, forget the dead, sweep for those who are gone.

`lead` says whether this node leads; the others ask it first.
"""
