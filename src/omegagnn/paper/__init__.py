"""The paper, reproduced: its printed numbers, its tables and figures declared as lists of trainings, and what came of them.

================  ======================================================================================
`published`       every number of every table of the paper
`trainings`       a configuration with its seeds, splits and choices, trained as one run
`cells`           a place in a table, and what is trained for it
`networks`        the networks that are compared under one budget
`nodes`           what is trained for the tables and figures on nodes; `graphs` the same for graphs
`measurements`    what is computed rather than trained: sizes, run times, small figures
`experiments`     the tables and figures by name
`runner`          does what is missing, once, whoever else is at it
`keeping`         what is kept of a training; `results` the folder that keeps it
`outcome`         from raw rows to means, intervals, choices and verdicts; `lines` all about a cell
`tables`          the tables as Markdown; `page` is `docs/results.md`, `figures` its pictures
================  ======================================================================================
"""
