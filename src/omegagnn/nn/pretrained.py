"""`Pretrained`: a network in a folder (``config.json``, ``model.safetensors``, ``README.md``), and back; nothing is pickled."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from omegagnn.errors import OmegaError, WrongUse
from omegagnn.files import (
    CARD,
    CONFIG,
    MODEL,
    check_model_folder,
    new_model_folder,
    read_config,
    replacing,
    write_bytes,
)

FORMAT = "omegagnn-network"


class Pretrained(nn.Module):
    """A network that is made of plain settings (numbers, words), and is kept as them and its weights."""

    #: The arguments of the constructor.
    settings: dict[str, Any]

    def save_pretrained(self, folder: Path | str, card: str | None = None) -> None:
        """Write the network into a folder.

        Args:
            folder: a new folder, or one with a model, which is replaced.
            card: the text of ``README.md``: what it was trained on, how good it is, what it is not for. Without it the card says
                what the network is, and that nobody said the rest.
        """
        settings = self._plain_settings()
        place = new_model_folder(folder)
        config = {
            "format": FORMAT,
            "class": _class_of(self).__name__,
            "settings": settings,
            "dtype": str(next(self.parameters()).dtype).removeprefix("torch."),
            "omegagnn": version("omegagnn"),
        }
        with replacing(place / MODEL) as part:
            save_model(self, str(part))
        write_bytes(place / CONFIG, (json.dumps(config, indent=1) + "\n").encode())
        write_bytes(place / CARD, (self._card(settings) if card is None else card).encode())

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> Self:
        """Return the network of a folder, ready to predict (``eval``)."""
        place = check_model_folder(folder)
        config = read_config(place)
        if config.get("format") != FORMAT or config.get("class") != _class_of(cls).__name__:
            raise OmegaError(
                f"{place} holds no {_class_of(cls).__name__} alone: a run, with its data's names and its members, is opened by "
                "omegagnn.Predictor.from_pretrained, a classifier by OmegaClassifier.from_pretrained."
            )
        try:
            net = cls(**config["settings"]).to(getattr(torch, config["dtype"]))
            load_model(net, place / MODEL)
        except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            words = " ".join(str(error).split()).rstrip(".")
            raise OmegaError(
                f"{place} is damaged: its {CONFIG} and its {MODEL} do not fit each other ({words}); fetch or save it again."
            ) from None
        return net.eval()

    def _plain_settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as JSON holds them, with the number of features that was found."""
        odd = [name for name, value in self.settings.items() if not isinstance(value, str | int | float | None)]
        if odd:
            raise WrongUse(
                f"The network was made with a {type(self.settings[odd[0]]).__name__} for {odd[0]}, which no file can say: make "
                "it with a word or a number, or keep its state_dict() as safetensors."
            )
        opening: Any = self.opening
        return {**self.settings, "in_channels": opening.in_channels}

    def _card(self, settings: dict[str, Any]) -> str:
        rows = "\n".join(f"| `{name}` | {json.dumps(value)} |" for name, value in settings.items())
        count = sum(parameter.numel() for parameter in self.parameters())
        name = _class_of(self).__name__
        return (
            f"---\nlibrary_name: omegagnn\ntags:\n- graph-neural-networks\n---\n\n# {name}\n\n"
            f"{count:,} parameters; a layer is f' = σ((I − Ω(I − S)) f K).\n\n"
            f'```python\nfrom omegagnn import {name}\n\nnet = {name}.from_pretrained("FOLDER")\n```\n\n'
            f"| setting | value |\n|---|---|\n{rows}\n\n"
            "## Data, metrics, protocol, limits\n\n"
            "Not told by who saved it. Features must be prepared as they were for training.\n"
        )


def _class_of(net: Pretrained | type[Pretrained]) -> type[Pretrained]:
    """Return the network's own class, below what was mixed in."""
    kinds = (net if isinstance(net, type) else type(net)).__mro__
    return next(kind for kind in kinds if Pretrained in kind.__mro__ and kind.__module__.startswith("omegagnn.nn"))
