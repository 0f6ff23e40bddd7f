"""The control loop: a policy on one vehicle, a decision every control period."""

from __future__ import annotations

import numpy as np
import torch

from wordwing.evaluation.rollout import MAX_STEPS, SETTLE_STEPS, Flight
from wordwing.flight.vehicle import Vehicle
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
    """Fly a task on a connected vehicle that hovers at its start, down to rest.

    The record holds the poses that the vehicle reported, with their noise and delay.
    """
    observation = vehicle.observe()
    gold = torch.from_numpy(np.asarray(task.gold_path, np.float32))
    policy.reset([task.instruction], observation.pose, gold_paths=[gold] if policy.needs_gold_path else None)
    states, setpoints, images = [observation.pose[0]], [], [observation.image[0]]
    decisions, stopped = max_steps, False
    for step in range(max_steps):
        action = policy.act(observation)
        if bool(action.stop[0]):
            decisions, stopped = step, True
            break
        setpoints.append(vehicle.send(action.setpoint))
        vehicle.wait(CONTROL_PERIOD)
        observation = vehicle.observe()
        states.append(observation.pose[0])
        images.append(observation.image[0])
    for _settle in range(SETTLE_STEPS):
        setpoints.append(vehicle.send(Setpoint.zero(1)))
        vehicle.wait(CONTROL_PERIOD)
        observation = vehicle.observe()
        states.append(observation.pose[0])
        images.append(observation.image[0])
    history = Pose.stack(states)
    return Flight(
        task=task,
        positions=history.position.numpy(),
        quaternions=history.quaternion.numpy(),
        setpoints=np.array([(float(s.forward[0]), float(s.yaw_rate[0])) for s in setpoints], np.float32),
        decisions=decisions,
        ended_by="stop" if stopped else "steps",
        images=[image.numpy() for image in images] if keep_images else [],
    )
