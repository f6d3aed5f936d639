"""Models on the Hugging Face Hub: the same folders, sent and fetched by ``huggingface_hub`` (extra ``hub``).

`HubNet`, `HubClassifier` and `HubPredictor` are `OmegaNet`, `OmegaClassifier` and `Predictor` with `push_to_hub` and a
`from_pretrained` that also takes ``owner/name``. Of a repository only the files of a model's folder are fetched: a pickle
that lies beside them never reaches this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from huggingface_hub import ModelHubMixin, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
except ImportError:
    raise ImportError("The Hub needs huggingface_hub: pip install 'omegagnn[hub]'.") from None

from omegagnn.errors import OmegaError
from omegagnn.files import CARD, CONFIG, MODEL, PICKLES, new_model_folder
from omegagnn.nn.model import OmegaNet
from omegagnn.training.classifier import OmegaClassifier
from omegagnn.training.model_folder import CLASSIFIER
from omegagnn.training.prediction import Predictor
from omegagnn.training.signature import DATA, SCHEMA

FILES = (CARD, CLASSIFIER, CONFIG, DATA, MODEL, SCHEMA)


class _OnHub(ModelHubMixin):
    """The Hub's manners around folders that are written and read as ever."""

    def save_pretrained(
        self, save_directory: Path | str, *, repo_id: str | None = None, push_to_hub: bool = False, **options: Any
    ) -> str | None:
        """Write the folder, and with `push_to_hub` send it to ``repo_id`` [the name of the folder]."""
        place = new_model_folder(save_directory)
        super(ModelHubMixin, self).save_pretrained(place)  # type: ignore[misc]
        if not push_to_hub:
            return None
        for belongs_to_saving in ("config", "model_card_kwargs"):
            options.pop(belongs_to_saving, None)
        return self.push_to_hub(repo_id or place.name, **options)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_model_name_or_path: Path | str,
        *,
        revision: str | None = None,
        cache_dir: Path | str | None = None,
        force_download: bool = False,
        local_files_only: bool = False,
        token: str | bool | None = None,
    ) -> Any:
        """Return the model of a folder, or of ``owner/name`` on the Hub."""
        folder = Path(pretrained_model_name_or_path)
        if not folder.exists() and folder.suffix.lower() not in PICKLES:
            try:
                fetched = snapshot_download(
                    str(pretrained_model_name_or_path),
                    revision=revision,
                    cache_dir=cache_dir,
                    force_download=force_download,
                    local_files_only=local_files_only,
                    token=token,
                    allow_patterns=list(FILES),
                )
            except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
                why = " ".join(str(error).split()).rstrip(".")
                raise OmegaError(
                    f"{folder} is no folder here and could not be fetched from the Hub ({why}): check the name and the network."
                ) from None
            folder = Path(fetched)
        return super(ModelHubMixin, cls).from_pretrained(folder)  # type: ignore[misc]


class HubNet(_OnHub, OmegaNet):  # type: ignore[misc]
    """`OmegaNet` on the Hub."""


class HubClassifier(_OnHub, OmegaClassifier):  # type: ignore[misc]
    """`OmegaClassifier` on the Hub."""


class HubPredictor(_OnHub, Predictor):  # type: ignore[misc]
    """`Predictor` on the Hub: ``HubPredictor.open(run_folder).push_to_hub("owner/name")``."""


__all__ = ["HubClassifier", "HubNet", "HubPredictor"]
