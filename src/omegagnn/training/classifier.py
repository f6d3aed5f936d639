"""`OmegaClassifier`: the engine in the manners of scikit-learn, which it does not need."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.own import from_pyg
from omegagnn.data.splits import held_out
from omegagnn.errors import InterruptedRun, WrongUse
from omegagnn.files import MODEL, check_model_folder
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan, Trainer
from omegagnn.training.environment import choose_device
from omegagnn.training.fit import Result
from omegagnn.training.inputs import Array, Features, read_features, read_graph, read_items, read_labels
from omegagnn.training.journal import Journal
from omegagnn.training.model_card import fitted_card
from omegagnn.training.model_folder import classifier_facts, save_classifier
from omegagnn.training.prediction import Predictor
from omegagnn.training.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Iterator

Items = npt.NDArray[np.int64]


class NotFittedError(WrongUse, AttributeError):
    """A classifier was asked before it was fitted."""


class OmegaClassifier:
    """Classify the nodes of a graph (or whole graphs), with `fit`, `predict`, `predict_proba` and `score`.

    Nodes that train are those of `train_mask`, all labelled ones without it. The epoch of each seed's weights is chosen by
    validation loss on the nodes of `val_mask`; without it a share of each class of the training nodes is held out for that.
    Labels of all other nodes are never looked at. Several seeds are trained as one batch, and their probabilities averaged.

    Unknown labels are None, NaN and pandas' NA, and -1 where labels are whole numbers. Features, labels and masks may be NumPy
    arrays, torch tensors, SciPy matrices or pandas objects; of a frame, the answers are a Series or a frame with its index.

    Args:
        model: ``omega-gcn``, ``omega-gat`` or a baseline (``gcn``, ``gat``, ``gcnii``, ``appnp``, ``mlp`` …).
        layers: number of layers.
        channels: hidden channels.
        omega: scope of ω (``channel``, ``layer``, ``global``) or a fixed number.
        dropout: p of dropout.
        epochs: longest training.
        patience: stop when validation has not improved for so long.
        seeds: number of members.
        random_state: the first seed, which also draws the validation nodes.
        validation_fraction: share of each class that is held out where no validation nodes are given.
        device: ``cpu`` or ``cuda``.
        runs_dir: where to record the training in a journal; None records it nowhere.
        settings: further values of the configuration, such as ``{"training.lr_oc": 0.05, "data.row_normalize": True}``.

    Attributes:
        classes_: the user's labels, sorted; columns of `predict_proba`.
        n_features_in_: number of features.
        feature_names_in_: names of the columns, where X was a frame.
        validation_scores_: accuracy of each seed on the validation nodes, in ``[0, 1]``.
        predictor_: the trained networks.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(60) % 2
    >>> edges = np.stack([np.arange(58), np.arange(2, 60)])  # neighbours are of the same kind
    >>> X = rng.normal(kind[:, None], 0.5, (60, 3))
    >>> y = np.where(kind == 1, "owl", "cat")
    >>> OmegaClassifier(epochs=20).fit(X, edges, y).predict(X, edges)[:3].tolist()
    ['cat', 'owl', 'cat']
    """

    def __init__(
        self,
        model: str = "omega-gcn",
        *,
        layers: int = 2,
        channels: int = 64,
        omega: str | float = "channel",
        dropout: float = 0.5,
        epochs: int = 1500,
        patience: int | None = 100,
        seeds: int = 1,
        random_state: int = 0,
        validation_fraction: float = 0.2,
        device: str | None = "cpu",
        runs_dir: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the parameters; they are checked by `fit`."""
        self.model = model
        self.layers = layers
        self.channels = channels
        self.omega = omega
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.seeds = seeds
        self.random_state = random_state
        self.validation_fraction = validation_fraction
        self.device = device
        self.runs_dir = runs_dir
        self.settings = settings

    # ---------------------------------------------------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is for the convention, there is nothing below them."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> OmegaClassifier:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in _parameters():
                raise WrongUse(f"OmegaClassifier has no parameter {name!r}: it has {', '.join(_parameters())}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _parameters()
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name]]
        return f"OmegaClassifier({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "predictor_")

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks, so it is there.
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags())

    # ------------------------------------------------------------------------------------------------------- training

    def fit(
        self,
        X: Any,
        edge_index: Any = None,
        y: Any = None,
        *,
        edge_weight: Any = None,
        train_mask: Any = None,
        val_mask: Any = None,
    ) -> OmegaClassifier:
        """Train.

        Args:
            X: features, one row a node; or a whole `Dataset` or PyG data (a list of them to classify graphs), which bring
                edges, labels and perhaps one split, whose test part is not looked at.
            edge_index: pairs ``[2, E]``, a `Graph`, a sparse adjacency matrix, or a frame of edges.
            y: labels, one a node.
            edge_weight: weights ``[E]``, or the name of their column in a frame of edges.
            train_mask: booleans or positions of the training nodes [all labelled nodes].
            val_mask: booleans or positions of the validation nodes [held out from the training nodes].
        """
        given = _whole(X)
        if given is None:
            features = read_features(X)
            labels, classes = read_labels(y, features)
            graph = read_graph(edge_index, features, edge_weight)
            whole = Dataset(
                "own", "node", graph, features.values, torch.from_numpy(labels), feature_names=features.names
            )
        else:
            if edge_index is not None or y is not None or edge_weight is not None:
                raise WrongUse("A data set brings its own edges and labels: give nothing beside it but masks.")
            whole, features = given, Features(torch.empty(given.labels.size(0), 0))
            labels, classes = _labels_of(given)
        train, val = self._parts(whole, labels, features, train_mask, val_mask)
        dataset, classes = _visible(whole, labels, classes, train, val)
        self._train(dataset, train, val)
        self.classes_ = classes
        self.n_features_in_ = dataset.num_features
        if features.names:
            self.feature_names_in_ = np.array(features.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _parts(
        self, dataset: Dataset, labels: Items, features: Features, train_mask: Any, val_mask: Any
    ) -> tuple[Items, Items]:
        """Return the items that train and those that validate."""
        val = None if val_mask is None else read_items(val_mask, features, "val_mask")
        if train_mask is not None:
            train = read_items(train_mask, features, "train_mask")
        elif len(dataset.splits) == 1:
            train = dataset.splits[0].train.numpy()
            val = dataset.splits[0].val.numpy() if val is None else val
        elif dataset.splits:
            raise WrongUse(
                f"{dataset.name} has {len(dataset.splits)} splits: choose one with dataset.with_splits((dataset.splits[0],)), or "
                "give train_mask."
            )
        else:
            train = np.flatnonzero(labels >= 0)
            train = train if val is None else np.setdiff1d(train, val)
        for name, part in (("train_mask", train), ("val_mask", val)):
            unknown = train[:0] if part is None else part[labels[part] < 0]
            if unknown.size:
                raise WrongUse(f"Item {unknown[0]} of {name} has no label: label it, or leave it out.")
        if val is None:
            if not 0 < self.validation_fraction < 1:
                raise WrongUse(f"validation_fraction must be between 0 and 1, not {self.validation_fraction}.")
            train, val = held_out(train, labels[train], self.validation_fraction, self.random_state)
        both = np.intersect1d(train, val)
        if both.size:
            raise WrongUse(f"Item {both[0]} is in both train_mask and val_mask: leave it in one.")
        if not train.size or not val.size:
            raise WrongUse(
                "Training needs a class with two labelled items, or items of its own in val_mask: label more."
            )
        return train, val

    def _train(self, dataset: Dataset, train: Items, val: Items) -> None:
        if not isinstance(self.seeds, (int, np.integer)) or self.seeds < 1:
            raise WrongUse(f"seeds must be a whole number of at least 1, not {self.seeds!r}.")
        split = Split("fit", torch.from_numpy(train), torch.from_numpy(val), torch.empty(0, dtype=torch.int64))
        seeds = [self.random_state + k for k in range(self.seeds)]
        plan = Plan(self._config(dataset.name), dataset.with_splits((split,)), seeds, [split] * len(seeds))
        with _kept(self.runs_dir) as folder:
            journal = Journal(folder)
            try:
                trainer = Trainer.start(plan, journal, choose_device(self.device))
                trainer.train()
                result = Result(journal, trainer.run_name)
                weights = read_tensors(result.folder / MODEL)[0]
                epochs = result.outcome("honest").epochs
                scores = [c.validation.score[e - 1] for c, e in zip(result.curves, epochs, strict=True)]
            except InterruptedRun:
                raise KeyboardInterrupt from None  # there is no run to go on with from the command line
            finally:
                journal.close()
        self.validation_scores_ = np.array(scores)
        self.predictor_ = Predictor(plan.config, Signature.of(dataset), weights)

    def _config(self, name: str) -> RunConfig:
        values = {
            "data.name": name,
            "model.name": self.model,
            "model.layers": self.layers,
            "model.channels": self.channels,
            "model.omega": self.omega,
            "model.dropout": self.dropout,
            "training.epochs": self.epochs,
            "training.patience": self.patience,
        }
        return RunConfig().with_values({**values, **(self.settings or {})})

    # ----------------------------------------------------------------------------------------------------- predicting

    def _check_fitted(self) -> None:
        if not hasattr(self, "predictor_"):
            raise NotFittedError("This OmegaClassifier is not fitted yet: call fit(X, edge_index, y) first.")

    def predict_proba(self, X: Any, edge_index: Any = None, *, edge_weight: Any = None) -> Any:
        """Return the probabilities of the classes, ``[n, classes]``: the mean over the seeds; a frame for a frame."""
        probabilities, index = self._probabilities(X, edge_index, edge_weight)
        return probabilities if index is None else pd.DataFrame(probabilities, index=index, columns=self.classes_)

    def predict(self, X: Any, edge_index: Any = None, *, edge_weight: Any = None) -> Any:
        """Return the label of each node of a graph, the one of training or another; a Series for a frame."""
        probabilities, index = self._probabilities(X, edge_index, edge_weight)
        labels = self.classes_[probabilities.argmax(1)]
        return labels if index is None else pd.Series(labels, index=index, name="predicted")

    def score(
        self, X: Any, edge_index: Any = None, y: Any = None, mask: Any = None, *, edge_weight: Any = None
    ) -> float:
        """Return the accuracy in ``[0, 1]`` on the labelled nodes, or on those of `mask` (booleans or positions)."""
        given = _whole(X)
        features = read_features(X) if given is None else Features(torch.empty(given.labels.size(0), 0))
        labels, classes = read_labels(y, features) if given is None else _labels_of(given)
        predicted = np.asarray(self.predict(X, edge_index, edge_weight=edge_weight))
        items = np.flatnonzero(labels >= 0) if mask is None else read_items(mask, features, "mask")
        if not items.size or bool((labels[items] < 0).any()):
            raise WrongUse("The nodes to score have no label: give y for them, or leave them out of mask.")
        return float(np.mean(predicted[items] == classes[labels[items]]))

    def _probabilities(self, X: Any, edge_index: Any, edge_weight: Any) -> tuple[Array, pd.Index[Any] | None]:
        self._check_fitted()
        predictor, index = self.predictor_, None
        given = _whole(X)
        if given is None:
            features = read_features(X, tuple(getattr(self, "feature_names_in_", ())))
            if features.values.size(1) != self.n_features_in_:
                raise WrongUse(
                    f"X has {features.values.size(1)} features, but fit saw {self.n_features_in_}: give the same ones."
                )
            graph, index = read_graph(edge_index, features, edge_weight), features.index
            labels = torch.full((graph.num_nodes,), -1)
            given = Dataset("own", "node", graph, features.values, labels, feature_names=features.names)
        found = predictor.probabilities(predictor.read(given), device=choose_device(self.device))
        return found.numpy(), index

    # ---------------------------------------------------------------------------------------------------------- keeping

    def save_pretrained(self, folder: Path | str, card: str | None = None) -> None:
        """Write the fitted classifier into a folder without pickles; `card` is its ``README.md`` [what is known here]."""
        self._check_fitted()
        known = card or self.predictor_.card
        save_classifier(self, folder, known or fitted_card(self.predictor_, self.validation_scores_.tolist()))

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> OmegaClassifier:
        """Return the classifier that `save_pretrained` wrote, fitted."""
        place = check_model_folder(folder)
        facts = classifier_facts(place)
        model = cls().set_params(**facts["params"])
        model.predictor_ = Predictor.from_pretrained(place)
        model.classes_, model.validation_scores_ = facts["classes"], facts["validation_scores"]
        model.n_features_in_ = model.predictor_.signature.features
        if facts["feature_names"]:
            model.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
        return model


def _parameters() -> dict[str, Any]:
    """Return the names and defaults of the constructor's arguments."""
    return {name: p.default for name, p in inspect.signature(OmegaClassifier).parameters.items()}


def _whole(X: Any) -> Dataset | None:
    """Return the data set of what brings its own edges and labels, or None for an array of features."""
    if isinstance(X, Dataset):
        return X
    graphs = isinstance(X, (list, tuple)) and len(X) > 0 and all(hasattr(item, "edge_index") for item in X)
    return from_pyg(X) if graphs or hasattr(X, "edge_index") else None


def _labels_of(dataset: Dataset) -> tuple[Items, Array]:
    if dataset.is_multilabel or dataset.is_regression or dataset.task == "inductive":
        raise WrongUse(
            f"OmegaClassifier learns one class a node or a graph, which {dataset.name} does not have: train with omegagnn.fit."
        )
    names = np.array(dataset.class_names) if dataset.class_names else np.arange(dataset.num_classes)
    return dataset.labels.numpy(), names


def _visible(whole: Dataset, labels: Items, classes: Array, train: Items, val: Items) -> tuple[Dataset, Array]:
    """Return the data set with no label but those of training and validation, and the classes that occur there."""
    inside = np.concatenate([train, val])
    present = np.unique(labels[inside])
    if len(present) < 2:
        raise WrongUse(f"All training nodes are of the class {classes[present[0]]!r}: there is nothing to learn.")
    shown = np.full(len(labels), -1, dtype=np.int64)
    shown[inside] = np.searchsorted(present, labels[inside])
    classes = classes[present]
    return replace(whole, labels=torch.from_numpy(shown), class_names=tuple(map(str, classes)), splits=()), classes


@contextmanager
def _kept(folder: Path | str | None) -> Iterator[Path]:
    """Yield the folder of a journal: the user's, or one that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="omegagnn-") if folder is None else nullcontext(str(folder)) as place:
        yield Path(place)
