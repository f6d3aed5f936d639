"""Pages that need nothing else: one HTML file each, no network, light and dark, readable on a phone and on paper."""

from omegagnn.report.explorer import explorer_page, write_explorer
from omegagnn.report.paper_page import paper_page, write_paper_page
from omegagnn.report.run_findings import RunFindings, gather
from omegagnn.report.run_page import report_page, write_report
from omegagnn.report.study_page import study_page, write_study_report

__all__ = [
    "RunFindings",
    "explorer_page",
    "gather",
    "paper_page",
    "report_page",
    "study_page",
    "write_explorer",
    "write_paper_page",
    "write_report",
    "write_study_report",
]
