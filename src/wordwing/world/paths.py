"""Curved paths past landmarks: the noisy walk that people were shown to describe (LANI and REAL).

A walk starts on the keep-out circle of one landmark and heads for random points on the circles of
others, one after the other, with noise on every step; circles push it out, so it curves around them.
A walk that leaves the arena, meets itself, takes too long or hardly touches a landmark it visits is
thrown away whole and begun anew, so most are: candidates therefore walk in large batches, one array
row each. Lakes, which bent the authors' LANI walks, are left out: generated corpora have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, ARENA_SIZE, CONFIG_UNITS
from wordwing.world.layout import Layout

UNIT = ARENA_SIZE / CONFIG_UNITS
TOLERANCE = 0.02
LANES = 4096

@dataclass(frozen=True)
class WalkConfig:
    """The rules of the walk; lengths in metres."""

    step: float = 4 * UNIT
    noise: float = 1.0
    spacing: float = 40 * UNIT
    reached: float = 20 * UNIT
    max_steps: int = 500
    visits: int = 5
    closest: int = 4
    min_leg: float = 200 * UNIT
    edge_margin: float = 0.0
    linger: int = 4
    aims: int = 1

    @classmethod
    def field(cls): return cls()
    @classmethod
    def cage(cls): return cls(noise=1.5, visits=4, edge_margin=160 * UNIT)
    @classmethod
    def house(cls): return cls(visits=3, aims=16, linger=3)


@dataclass(frozen=True)
class Walk:
    points: NDArray[np.float64]
    visited: tuple[int, ...]


@dataclass
class _Batch:
    layout: NDArray
    attempt: NDArray
    centre: NDArray
    radius: NDArray
    open: NDArray      # [B, L] can still be visited
    visits: NDArray    # [B] wanted
    position: NDArray
    target: NDArray
    order: NDArray     # [B, V]
    legs: NDArray      # [B] number visited
    steps: NDArray
    travelled: NDArray
    points: NDArray
    count: NDArray

    def __len__(self): return len(self.layout)

    def keep(self, rows):
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name)[rows])


def _aim(b, rows, config, rng):
    """Choose next landmark and target for rows; returns bool [R] whether one was found."""
    d = np.linalg.norm(b.centre[rows] - b.position[rows, None], axis=-1)
    d[~b.open[rows] | (d < config.min_leg)] = np.inf
    ranked = np.argsort(d, axis=1)
    choices = np.minimum(np.isfinite(d).sum(1), config.closest)
    pick = (rng.random(len(rows)) * choices).astype(int)
    chosen = ranked[np.arange(len(rows)), pick]
    angle = rng.uniform(0, 2*np.pi, (len(rows), config.aims))
    direction = np.stack([np.cos(angle), np.sin(angle)], -1)
    target = b.centre[rows, chosen][:, None] + b.radius[rows, chosen][:, None, None] * direction  # [R, A, 2]
    good = (np.abs(target) <= ARENA_HALF - config.edge_margin).all(-1)
    gap = np.linalg.norm(target[:, :, None] - b.centre[rows][:, None], axis=-1) - b.radius[rows][:, None]
    good &= (gap > -1e-9).all(-1)
    first = good.argmax(1)
    b.target[rows] = target[np.arange(len(rows)), first]
    b.open[rows, chosen] = False
    b.order[rows, b.legs[rows]] = chosen
    b.legs[rows] += 1
    b.steps[rows] = 0
    return good.any(1) & (choices > 0)


DEATH = {}
def _run(b, config, rng, found):
    t = 0
    while len(b):
        n = len(b)
        alive = np.ones(n, bool)
        delta = b.target - b.position
        angle, size = rng.random((2, n))
        angle *= 2*np.pi
        size *= config.step * config.noise
        new = b.position + delta * (config.step / np.linalg.norm(delta, axis=-1))[:, None]
        new[:, 0] += size*np.cos(angle)
        new[:, 1] += size*np.sin(angle)
        dx = new[:, :1] - b.centre[:, :, 0]
        dy = new[:, 1:] - b.centre[:, :, 1]
        rows = np.flatnonzero((dx*dx+dy*dy < b.radius**2).any(1))
        for _ in range(2):
            if not rows.size: break
            off = new[rows, None] - b.centre[rows]
            d = np.linalg.norm(off, axis=-1)
            depth = b.radius[rows] - d
            deepest = depth.argmax(1)
            k = np.arange(len(rows))
            new[rows] += off[k, deepest] * (depth[k, deepest] / d[k, deepest])[:, None]
            off = new[rows, None] - b.centre[rows]
            left = (b.radius[rows] - np.linalg.norm(off, axis=-1)).max(1)
            rows = rows[left > 1e-9]
            last = left[left > 1e-9]
        if rows.size:
            alive[rows[last > TOLERANCE]] = False
            DEATH['push'] = DEATH.get('push', 0) + (last > TOLERANCE).sum()
        moved = np.linalg.norm(new - b.position, axis=-1)
        b.position = new
        crossed = (b.travelled + moved) // config.spacing > b.travelled // config.spacing
        b.travelled += moved
        b.steps += 1
        oob = (np.abs(new) > ARENA_HALF).any(1)
        DEATH['oob'] = DEATH.get('oob', 0) + oob.sum()
        alive &= ~oob
        slow = (b.steps > config.max_steps)
        DEATH['slow'] = DEATH.get('slow', 0) + slow.sum()
        alive &= ~slow
        rows = np.flatnonzero(crossed & alive)
        if rows.size:
            c = b.count[rows]
            if c.max() >= b.points.shape[1]:
                b.points = np.concatenate([b.points, np.full_like(b.points, np.inf)], 1)
            m = c.max()
            if m > 2:
                past = b.points[rows, :m]
                dd = past - new[rows, None]
                dd = (dd*dd).sum(-1)
                old = np.arange(m) < (c - 2)[:, None]
                meets = ((dd <= config.spacing**2) & old).any(1)
            else:
                meets = np.zeros(len(rows), bool)
            DEATH['meets'] = DEATH.get('meets', 0) + meets.sum()
            edge = (np.abs(new[rows]) > ARENA_HALF - config.edge_margin).any(1)
            DEATH['edge'] = DEATH.get('edge', 0) + (edge&~meets).sum()
            b.points[rows, c] = new[rows]
            b.count[rows] += 1
            alive[rows] = ~meets & ~edge
        rows = np.flatnonzero(alive & (np.linalg.norm(b.target - new, axis=-1) < config.reached))
        if rows.size:
            done = b.legs[rows] == b.visits[rows]
            for r in rows[done]:
                DEATH['done'] = DEATH.get('done', 0) + 1
                pts = b.points[r, :b.count[r]]
                vis = b.order[r, :b.legs[r]]
                dist = np.linalg.norm(pts[:, None] - b.centre[r, vis[1:]], axis=-1)
                near = (dist < b.radius[r, vis[1:]] + config.spacing).sum(0)
                if (near >= config.linger).all():
                    key = b.layout[r]
                    if key not in found or found[key][0] > b.attempt[r]:
                        found[key] = (b.attempt[r], Walk(pts.copy(), tuple(vis.tolist())))
                else:
                    DEATH['boring'] = DEATH.get('boring', 0) + 1
            alive[rows[done]] = False
            rows = rows[~done]
            if rows.size:
                ok = _aim(b, rows, config, rng)
                DEATH['aim'] = DEATH.get('aim', 0) + (~ok).sum()
                alive[rows] = ok
        t += 1
        if alive.sum() < len(alive):
            b.keep(alive)
    return t


def sample_walks(layouts, rng, config, attempts=1000, starts=None):
    n = len(layouts)
    L = max(len(l.landmarks) for l in layouts)
    centre = np.full((n, L, 2), 1e3); radius = np.zeros((n, L)); open_ = np.zeros((n, L), bool)
    for i, l in enumerate(layouts):
        k = len(l.landmarks)
        centre[i, :k] = l.centres; radius[i, :k] = l.keep_out
        open_[i, :k] = [p.elevation == 0 for p in l.landmarks]
    visits = np.minimum(config.visits, open_.sum(1) - 1)
    found = {}
    tried = 0
    total = 0
    while tried < attempts:
        todo = np.array([i for i in range(n) if i not in found and visits[i] > 1], int)
        if not len(todo): break
        todo = todo[:LANES*4]
        each = min(max(1, LANES // len(todo)), attempts - tried)
        lay = np.repeat(todo, each)
        B = len(lay)
        total += B
        b = _Batch(lay, np.tile(np.arange(each), len(todo)), centre[lay], radius[lay], open_[lay], visits[lay],
            rng.uniform(-ARENA_HALF + 45*UNIT, ARENA_HALF - 45*UNIT, (B, 2)), np.zeros((B, 2)), np.zeros((B, config.visits), int), np.zeros(B, int),
            np.zeros(B, int), np.zeros(B), np.full((B, 64, 2), np.inf), np.zeros(B, int))
        if starts is None:
            ok = _aim(b, np.arange(B), config, rng)
            b.position = b.target.copy()
        else:
            ok = np.ones(B, bool)
            last = np.array([starts[i].visited[-1] for i in lay])
            b.position = np.array([starts[i].points[-1] for i in lay])
            b.order[:, 0] = last
            b.legs[:] = 1
            b.open[np.arange(B), last] = False
        b.points[:, 0] = b.position
        b.count[:] = 1
        DEATH['start'] = DEATH.get('start', 0) + (~ok).sum()
        b.keep(ok)
        ok = _aim(b, np.arange(len(b)), config, rng)
        DEATH['aim'] = DEATH.get('aim', 0) + (~ok).sum()
        b.keep(ok)
        _run(b, config, rng, found)
        tried += each
    DEATH['total'] = total
    return [found[i][1] if i in found else None for i in range(n)]
