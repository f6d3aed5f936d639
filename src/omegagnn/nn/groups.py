"""The paper's three groups of parameters, and their form for a torch optimiser."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.parameter import Parameter

GroupName = Literal["gnn", "oc", "omega"]


class Grouped(nn.Module):
    """A network whose parameters are grouped as `OmegaNet` groups them."""

    capturable = False  # whether a CUDA graph can record its passes: nothing in them asks the device for a value

    def grouped_parameters(self) -> dict[GroupName, list[Parameter]]:
        """Return the parameters of the layers (``gnn``), of everything else (``oc``) and ω (``omega``)."""
        raise NotImplementedError

    def auxiliary_loss(self) -> Tensor | None:
        """Return what the last forward pass adds to the training loss (``[R]`` with runs), once; usually None."""
        return None

    def param_groups(
        self,
        lr_gnn: float = 0.01,
        lr_oc: float = 0.01,
        lr_omega: float = 0.01,
        wd_gnn: float = 0.0,
        wd_oc: float = 0.0,
        wd_omega: float = 0.0,
    ) -> list[dict[str, Any]]:
        """Return parameter groups for a torch optimiser: ``torch.optim.Adam(net.param_groups(wd_gnn=5e-4))``."""
        rates = {"gnn": (lr_gnn, wd_gnn), "oc": (lr_oc, wd_oc), "omega": (lr_omega, wd_omega)}
        return [
            {"params": parameters, "lr": rates[name][0], "weight_decay": rates[name][1], "name": name}
            for name, parameters in self.grouped_parameters().items()
            if parameters
        ]
