"""The control loop: a policy on one vehicle, a decision every control period."""

from __future__ import annotations

import numpy as np
import torch

from wordwing.execution.runner import MAX_STEPS, SETTLE_STEPS, Flight, beliefs_of, goals_of
from wordwing.flight.vehicle import FlightOverError, Vehicle
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, Policy, Setpoint
from wordwing.world.tasks import Task


def fly_vehicle(
    policy: Policy,
    vehicle: Vehicle,
    task: Task,
    *,
    max_steps: int = MAX_STEPS,
    keep_images: bool = False,
) -> Flight:
    """Fly a task on a connected vehicle that hovers at its start, until it hovers at rest.

    The record holds the poses that the vehicle reported, with their noise and delay. If the vehicle ends the flight,
    the record ends there and says why.
    """
    seen = [vehicle.observe()]
    sent: list[Setpoint] = []
    beliefs, goals = [], []

    def fly(setpoint: Setpoint) -> None:
        sent.append(vehicle.send(setpoint))
        vehicle.wait(CONTROL_PERIOD)
        seen.append(vehicle.observe())

    gold = [torch.from_numpy(np.asarray(task.gold_path, np.float32))]
    policy.reset([task.instruction], seen[0].pose, gold_paths=gold if policy.needs_gold_path else None)
    stopped, decisions, interrupted = False, None, None
    try:
        while not stopped and len(sent) < max_steps:
            action = policy.act(seen[-1])
            beliefs += beliefs_of(policy, 0) if keep_images else []
            believed = goals_of(policy)
            goals += [] if believed is None else [believed[0].double().cpu().numpy()]
            stopped = bool(action.stop[0])
            if not stopped:
                fly(action.setpoint)
        decisions = len(sent)
        for _period in range(SETTLE_STEPS):
            fly(Setpoint.zero(1))
    except FlightOverError as over:
        interrupted = str(over)
        del sent[len(seen) - 1 :]  # what nothing was seen after
    poses = Pose.stack([observation.pose[0] for observation in seen]).to("cpu")
    return Flight(
        task=task,
        positions=poses.position.numpy(),
        quaternions=poses.quaternion.numpy(),
        setpoints=np.array([[float(s.forward[0]), float(s.yaw_rate[0])] for s in sent], np.float32).reshape(-1, 2),
        decisions=len(sent) if decisions is None else min(decisions, len(sent)),
        ended_by="stop" if stopped else "steps",
        seconds_inside_landmarks=vehicle.seconds_inside_landmarks,
        images=[observation.image[0].cpu().numpy() for observation in seen] if keep_images else [],
        beliefs=beliefs,
        goals=np.array(goals, float).reshape(-1, 3),
        interrupted=interrupted,
    )
