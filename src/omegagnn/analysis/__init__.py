"""Diagnosis of over-smoothing and the theory behind ω: energies, spectra, traces of any model, theorems as functions."""

from omegagnn.analysis.calibration import Calibration, calibration
from omegagnn.analysis.diagnosis import Diagnosis, diagnose
from omegagnn.analysis.embedding import principal_components
from omegagnn.analysis.energy import (
    dirichlet_energy,
    distance_within,
    effective_rank,
    gat_energy,
    gradient_norms,
    mean_average_distance,
    relative_energy,
)
from omegagnn.analysis.impulse import impulse_response
from omegagnn.analysis.layer_measures import Facts, LayerMeasures
from omegagnn.analysis.reading import Finding
from omegagnn.analysis.spectrum import (
    Thresholds,
    critical_omega,
    filter_response,
    laplacian_spectrum,
    leading_eigenvector,
    learnt_omegas,
    operator_kind,
    propagation_spectrum,
    sign_pattern,
    sign_threshold,
    thresholds,
)
from omegagnn.analysis.trace import LayerTrace, Trace, trace

__all__ = [
    "Calibration",
    "Diagnosis",
    "Facts",
    "Finding",
    "LayerMeasures",
    "LayerTrace",
    "Thresholds",
    "Trace",
    "calibration",
    "critical_omega",
    "diagnose",
    "dirichlet_energy",
    "distance_within",
    "effective_rank",
    "filter_response",
    "gat_energy",
    "gradient_norms",
    "impulse_response",
    "laplacian_spectrum",
    "leading_eigenvector",
    "learnt_omegas",
    "mean_average_distance",
    "operator_kind",
    "principal_components",
    "propagation_spectrum",
    "relative_energy",
    "sign_pattern",
    "sign_threshold",
    "thresholds",
    "trace",
]
