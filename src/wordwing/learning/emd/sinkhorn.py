"""Warp kernels of Sinkhorn's algorithm for many small transport problems (see `wordwing.learning.emd`).

A thread owns one place of one side of one problem and walks over all places of the other side. Distances are computed
anew each time, so there is no [N, K, P] tensor. The kernels know no difference between the sides.
"""
# mypy: ignore-errors

import warp as wp

wp.set_module_options({"enable_backward": False, "fast_math": True})

LEAST = wp.constant(-1.0e30)
"""Stands for the logarithm of zero."""


@wp.struct
class Side:
    """One side of N problems, [N, P] each: places that hold mass."""

    place: wp.array2d(dtype=wp.vec2)  # m
    mass: wp.array2d(dtype=float)
    log_mass: wp.array2d(dtype=float)
    count: wp.array(dtype=int)  # [N] from this place on there is no mass
    potential: wp.array2d(dtype=float)  # m
    score: wp.array2d(dtype=float)  # log_mass + potential / ε, with the ε of the next step that reads it


@wp.kernel
def sinkhorn_update(mine: Side, others: Side, sharpness: float, next_sharpness: float, relaxation: float):
    """Sinkhorn's update of one side: potentials under which the softened plan would empty each of its places.

    Args:
        mine: The side that is updated.
        others: The other side; its scores are read.
        sharpness: 1 / ε of this update.
        next_sharpness: 1 / ε of the update that will read the scores.
        relaxation: 1 goes to the new potentials, 2 as far again beyond them.
    """
    n, i = wp.tid()
    if i >= mine.count[n]:
        return
    place = mine.place[n, i]
    highest = wp.float32(LEAST)
    total = wp.float32(0.0)  # of exp(score - highest) so far
    for j in range(others.count[n]):
        score = others.score[n, j] - sharpness * wp.length(place - others.place[n, j])
        smaller = wp.exp(-wp.abs(score - highest))
        total = wp.where(score > highest, total * smaller + 1.0, total + smaller)
        highest = wp.max(score, highest)
    old = mine.potential[n, i]
    potential = old + relaxation * (-(highest + wp.log(total)) / sharpness - old)
    mine.potential[n, i] = potential
    mine.score[n, i] = mine.log_mass[n, i] + next_sharpness * potential


@wp.kernel
def c_transform(mine: Side, others: Side):
    """The c-transform: the greatest potentials of one side that those of the other side allow."""
    n, i = wp.tid()
    if i >= mine.count[n]:
        return
    place = mine.place[n, i]
    least = wp.float32(-LEAST)
    for j in range(others.count[n]):
        if others.mass[n, j] > 0.0:
            least = wp.min(least, wp.length(place - others.place[n, j]) - others.potential[n, j])
    mine.potential[n, i] = least
