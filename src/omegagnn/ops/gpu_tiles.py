"""Tiles of the gathering kernels, as `benchmarks/gpu_tiles.py` measured them on an H200: (channels, entries, warps).

A tile is what one program reads at once: so many channels of so many neighbours. Narrow ones keep what all programs read
within the cache, tall ones have more reads under way, and either costs registers, of which few programs at a time are the
price. `few` is for graphs that leave the device half empty, where only the longest row counts; 4 and 2 are bytes of a number.
"""

TILES: dict[str, tuple[int, int, int]] = {
    "attend 2": (256, 4, 1),
    "attend 4": (128, 4, 1),
    "attend few": (64, 32, 1),
    "attend_backward 2": (256, 2, 1),
    "attend_backward 4": (256, 2, 1),
    "attend_backward few": (64, 32, 4),
    "rows 2": (256, 4, 1),
    "rows 4": (128, 8, 1),
    "rows few": (64, 32, 1),
    "rows_backward 2": (256, 4, 1),
    "rows_backward 4": (128, 8, 1),
    "rows_backward few": (64, 32, 1),
}
