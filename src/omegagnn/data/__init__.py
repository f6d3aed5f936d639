"""Data sets: the benchmarks of the paper, a user's own graphs, their splits and an audit of both."""
