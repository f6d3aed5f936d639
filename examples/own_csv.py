"""From two CSV files to a classifier. `omegagnn data import` and `omegagnn train` do the same from the shell."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from omegagnn import fit
from omegagnn.data import choose_splits
from omegagnn.data.own import Recipe, read_source

# Files as yours might be: 300 people, who mostly know people of their own team; the team of a fifth is unknown.
random = np.random.default_rng(0)
names = np.array([f"p{k}" for k in range(300)])
team = random.integers(0, 2, 300)
pairs = random.integers(0, 300, (2000, 2))
meet = random.random(2000) < np.where(team[pairs[:, 0]] == team[pairs[:, 1]], 0.9, 0.2)
people = pd.DataFrame({
    "name": names,
    "age": random.normal(35 + 4 * team, 6).round(),
    "town": random.choice(["Ulm", "Bonn"], 300),
    "team": np.where(random.random(300) < 0.8, np.where(team, "blue", "red"), ""),
})  # fmt: skip
friends = pd.DataFrame({"from": names[pairs[meet, 0]], "to": names[pairs[meet, 1]]})

with tempfile.TemporaryDirectory() as folder:
    people.to_csv(Path(folder, "nodes.csv"), index=False)
    friends.to_csv(Path(folder, "edges.csv"), index=False)

    dataset, schema = read_source(folder, Recipe(label="team", standardize=True), name="teams")
    dataset = dataset.with_splits(choose_splits(dataset, "ratio:0.6,0.2:3"))
    print(dataset)
    print("features:", ", ".join(dataset.feature_names))

    result = fit(dataset, seeds=2, training__epochs=100, runs_dir=Path(folder, "runs"))
    print("test accuracy over 3 splits × 2 seeds:", result.test(), "%")
