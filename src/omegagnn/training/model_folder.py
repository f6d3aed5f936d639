"""The folder of a trained model: what `predict` needs, to be given away: weights, configuration, names, coding, a card.

===================== ==================================================================================================
``config.json``       the configuration, the classes' names, the rule that chose the weights
``model.safetensors`` the weights of every member, byte for byte those of the run
``data.json``         sizes, names and hashes of the data
``schema.json``       how each column was coded, where the data came from a user's tables
``README.md``         the model card
===================== ==================================================================================================

A folder of `OmegaClassifier` holds ``classifier.json`` besides. Nothing in it is pickled, and nothing that is gets loaded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.torch import save

from omegagnn import __version__
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.files import CARD, CONFIG, MODEL, new_model_folder, write_bytes
from omegagnn.training.checkpoint import sha256
from omegagnn.training.model_card import SHA256_HERE

if TYPE_CHECKING:
    from omegagnn.training.classifier import OmegaClassifier
    from omegagnn.training.prediction import Predictor

FORMAT = "omegagnn-model"
CLASSIFIER = "classifier.json"
# Kinds of labels that JSON brings back as they were.
PLAIN_LABELS = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64", "U": "str", "O": "object"}


def save_model(predictor: Predictor, folder: Path | str, card: str) -> Path:
    """Write what a predictor is made of into a new folder, or over another model."""
    weights, place = predictor.weights, new_model_folder(folder)
    if isinstance(weights, Path) and weights.parent.resolve() == place.resolve():
        raise WrongUse(f"{place} is where the model lies already: name another folder.")
    signature = predictor.signature
    config = {
        "format": FORMAT,
        "omegagnn": __version__,
        "config": predictor.config.model_dump(mode="json"),
        "protocol": predictor.rule,
        "members": predictor.members,
        "features": signature.features,
        "classes": signature.classes,
        "labels": list(signature.names_of_classes),
    }
    content = weights.read_bytes() if isinstance(weights, Path) else save(weights)
    write_bytes(place / MODEL, content)
    signature.save(place)
    write_bytes(place / CONFIG, (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode())
    write_bytes(place / CARD, card.replace(SHA256_HERE, sha256(place / MODEL)).encode())
    return place


# ---------------------------------------------------------------------------------------------------- OmegaClassifier


def save_classifier(model: OmegaClassifier, folder: Path | str, card: str) -> None:
    """Write a fitted classifier: its model, and what it knows of the user's labels."""
    kind = model.classes_.dtype.kind
    labels = model.classes_.tolist()
    if kind not in PLAIN_LABELS or not all(isinstance(label, str | int | float) for label in labels):
        raise WrongUse(
            f"The labels are of {type(labels[0]).__name__}, which no JSON file keeps: fit the classifier on texts or numbers."
        )
    params = {name: str(value) if isinstance(value, Path) else value for name, value in model.get_params().items()}
    facts = {
        "params": {**params, "settings": None if model.settings is None else dict(model.settings)},
        "classes": labels,
        "kind": kind,
        "feature_names": list(getattr(model, "feature_names_in_", ())),
        "validation_scores": model.validation_scores_.tolist(),
    }
    try:
        text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    except TypeError as error:
        raise WrongUse(f"A parameter of the classifier is no plain value ({error}): fit it with plain ones.") from None
    place = save_model(model.predictor_, folder, card)
    write_bytes(place / CLASSIFIER, text.encode())


def classifier_facts(folder: Path) -> dict[str, Any]:
    """Return what `save_classifier` wrote, the labels as the array that `fit` made of them."""
    path = folder / CLASSIFIER
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kind = PLAIN_LABELS[facts["kind"]]
        facts["classes"] = np.array(facts["classes"], dtype=None if kind == "str" else kind)
        facts["validation_scores"] = np.array(facts["validation_scores"])
        if not {"params", "feature_names"} <= facts.keys():
            raise KeyError("params")
        return facts
    except FileNotFoundError:
        raise OmegaError(f"{folder} holds no classifier: open it with omegagnn.Predictor.from_pretrained.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise OmegaError(f"{path} is damaged ({error}): fetch or save it again.") from None
