"""A hundred seeds as one batch: the distribution of a result instead of one lucky number."""

import tempfile

import numpy as np

from omegagnn import fit

with tempfile.TemporaryDirectory() as folder:
    result = fit("karate", seeds=100, training__epochs=60, runs_dir=folder)
    scores = 100 * result.scores()  # of each seed, at the epoch its own validation loss chose
    print("test accuracy", result.test(), "%")
    for percent in (5, 50, 95):
        print(f"  {percent:2} % of the seeds are at or below {np.percentile(scores, percent):.1f} %")
    print(f"reading each seed at its best test epoch would add {result.optimism_gap:.1f} points")
    print(f"{result.row['seconds']:.1f} s for all of them")
