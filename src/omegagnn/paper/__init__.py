"""The paper, reproduced: its printed numbers, its tables and figures declared as lists of runs, and what came of them.

=============  =========================================================================================
`published`    every number of every table of the paper
`cells`        what is trained for a table, as configurations, seeds and splits
`items`        the tables and figures by name: what each needs and which command makes it
`runner`       trains what is missing; several processes share one journal
`export`       the compact rows of `results/paper`, from which alone tables and figures are made
`tables`       `docs/results.md`
`figures`      its pictures
=============  =========================================================================================
"""
