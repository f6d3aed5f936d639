"""The compiled CPU kernels of `omegagnn.ops.cpu` for a whole ωGCN layer, propagation and map; see `omegagnn.ops.cpu_kernels`."""

from __future__ import annotations

from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_kernels import CHUNK, TILE, Address, Relu, compiled, fetch_limit, mix
from omegagnn.ops.cpu_lanes import pointer
from omegagnn.ops.cpu_products import BLOCK, multiply_tile, shifted, sum_products


@kept_on_disk
@njit(**compiled)
def layer(
    like: float,
    index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    weight: Address,
    x: Address,
    omega: Address,
    map_: Address,
    z: Address,
    y: Address,
    keep: bool,
    runs: int,
    rows: int,
    width: int,
    columns: int,
    begin: int,
    end: int,
) -> None:
    """Write z = (1 − ω) σ(x) + ω S σ(x) times the map to y; z ``[R, n, c]`` is kept or, a tile a chunk, room to work in."""
    graph = (pointer(rowptr, index), pointer(col, index), pointer(weight, like))
    features, limit = (pointer(x, like), pointer(omega, like)), fetch_limit(graph[0], end, rows * width)
    for run in range(runs):
        own_map, product = shifted(like, map_, run * width * columns), shifted(like, y, run * rows * columns)
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            origin = run * rows * width if keep else (begin // CHUNK * TILE - first) * width  # of row 0
            mixed = shifted(like, z, origin - run * rows * width)
            mix(
                like,
                0,
                width,
                *graph,
                0,
                *features,
                mixed,
                width,
                first,
                last,
                limit,
                run * rows * width,
                run * width,
                relu,
            )
            multiply_tile(like, shifted(like, z, origin), own_map, product, width, columns, first, last)


@kept_on_disk
@njit(**compiled)
def layer_backward(
    like: float,
    index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    weight: Address,
    x: Address,
    omega: Address,
    map_: Address,
    z: Address,
    grad: Address,
    grad_z: Address,
    grad_map: Address,
    kept: bool,
    runs: int,
    rows: int,
    width: int,
    columns: int,
    share: int,
    begin: int,
    end: int,
) -> None:
    """Write g Kᵀ to grad_z and zᵀ g of each share of rows to grad_map; the map comes transposed, z as `layer` left it."""
    graph = (pointer(rowptr, index), pointer(col, index), pointer(weight, like))
    features, limit = (pointer(x, like), pointer(omega, like)), fetch_limit(graph[0], end, rows * width)
    shares = -(-rows // share)
    for run in range(runs):
        own_map, given = shifted(like, map_, run * width * columns), shifted(like, grad, run * rows * columns)
        wanted, start = shifted(like, grad_z, run * rows * width), run * rows * width
        for first in range(begin, end, BLOCK):
            last = min(first + BLOCK, end)
            origin = start if kept else (begin // CHUNK * TILE - first) * width
            if not kept:
                mixed = shifted(like, z, origin - start)
                mix(like, 0, width, *graph, 0, *features, mixed, width, first, last, limit, start, run * width, relu)
            sums = shifted(like, grad_map, (run * shares + first // share) * width * columns)
            fresh = first % share == 0
            sum_products(like, 0, columns, shifted(like, z, origin), given, sums, width, columns, first, last, fresh)
            multiply_tile(like, given, own_map, wanted, columns, width, first, last)
