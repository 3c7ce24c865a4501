"""The workers as their node sees them: started, watched, replaced, seen off, buried.

`supervisor` keeps the places, `child` is one process, `succession` how another follows, `burial` what a dead one held.
"""
