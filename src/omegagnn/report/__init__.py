"""Pages that need nothing else: one HTML file each, no network, light and dark, readable on a phone and on paper."""

from omegagnn.report.explorer import explorer_page, write_explorer

__all__ = ["explorer_page", "write_explorer"]
