"""Stage 2, g, and the value network V: from visitation distributions to velocity commands (paper: Control Network).

Differences from the paper's figure, both so that the network knows *how much* probability is *where*: no normalisation
follows the convolutions, and it sees the whole map coarsely besides the close crop.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Setpoint
from wordwing.model.ego import EgoView
from wordwing.model.layers import convolution, leaky, single_precision


@dataclass(frozen=True)
class Stage2Config:
    """Size and initialisation of the control network."""

    hidden: int = 32
    """Width of the perceptron."""
    filters: int = 4
    """Channels that each of the three views is turned into."""
    embedding: int = 16
    """Length of the vector that stands for one p_oob."""
    close_gain: float = 32.0
    """Factor on probabilities of cells: a path is some thirty cells long, so they come near 1."""
    whole_gain: float = 4.0
    """Factor on probabilities of coarse cells."""
    min_deviation: float = 0.05
    """Floor of the standard deviations, as a share of the setpoint's range."""
    first_deviation: float = 0.5
    """Initial standard deviations, as a share of the setpoint's range."""
    first_forward: float = 0.5
    """Initial mean forward velocity, as a share of the greatest."""
    first_stop: float = -3.0
    """Initial stop logit: a flight of an untrained policy then has 21 decisions on average, as ORACLE's have."""
    phases: int = 1
    """Phases of the trajectory in its input: as many as stage 1 predicts, or 1 for the trajectory as a whole."""
    history: bool = False
    """Whether it also sees where the drone has flown, how it moved last, and how much of each phase lies behind it."""


@dataclass(frozen=True)
class Control:
    """Actions of N drones: two normal distributions and a probability of STOP."""

    mean: Tensor
    """[N, 2] forward velocity and yaw rate, as shares of 0.7 m/s and 1 rad/s; not yet clipped to [0, 1] and [-1, 1]."""
    deviation: Tensor
    """[N, 2] standard deviations, in the same unit."""
    stop_logit: Tensor
    """[N]."""

    @property
    def stop_probability(self) -> Tensor:
        """p^STOP [N]."""
        return torch.sigmoid(self.stop_logit)

    @property
    def setpoint(self) -> Setpoint:
        """The means as setpoints within the limits."""
        return to_setpoint(self.mean)


def to_setpoint(action: Tensor) -> Setpoint:
    """Shares [N, 2] to setpoints within the limits."""
    return Setpoint(MAX_FORWARD * action[:, 0], MAX_YAW_RATE * action[:, 1]).clamp()


class ControlNetwork(nn.Module):
    """Convolutions over both views, embeddings of both p_oob, a perceptron of three layers."""

    directions: Tensor

    def __init__(self, config: Stage2Config, outputs: int) -> None:
        super().__init__()
        self.config = config
        self.close = convolution(config.phases + 1, config.filters, stride=2)
        self.whole = convolution(config.phases + 1, config.filters, stride=3, padding=0)
        self.masks = convolution(2 + config.history, config.filters, stride=3, padding=0)
        self.flown = convolution(1, config.filters, stride=2) if config.history else None
        # q_1 and q_2 of the paper: drawn once, saved, never learned.
        self.register_buffer("directions", torch.randn(2, config.embedding))
        inputs = (3 + config.history) * config.filters * 8 * 8 + 2 * config.embedding  # each view becomes 8×8
        inputs += (3 + config.phases) * config.history
        self.first = nn.Linear(inputs, config.hidden)
        self.second = nn.Linear(inputs + config.hidden, config.hidden)
        self.last = nn.Linear(config.hidden, outputs)
        # Large activations inside, but the actions of an untrained network depend on the last biases alone.
        for layer, gain in ((self.first, 2**0.5), (self.second, 2**0.5), (self.last, 0.01)):
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.zeros_(layer.bias)

    def forward(self, view: EgoView) -> Tensor:
        """[N, outputs], in single precision: PPO compares probabilities to a hundredth."""
        plan, masks = view.whole.tensor_split((self.config.phases + 1,), dim=1)
        with single_precision(masks.device):
            maps = [
                self.close(self.config.close_gain * view.close),
                self.whole(self.config.whole_gain * plan),
                self.masks(masks),
            ]
            more = [self.embed(view.unobserved)]
            if self.flown is not None and view.flown is not None and view.done is not None:
                maps.append(self.flown(view.flown))
                more.append(view.done)
            inputs = torch.cat([*(leaky(features).flatten(1) for features in maps), *more], dim=1)
            hidden = leaky(self.first(inputs))
            hidden = leaky(self.second(torch.cat([hidden, inputs], dim=1)))
            return self.last(hidden)

    def embed(self, unobserved: Tensor) -> Tensor:
        """EMBED = q · p - q · (1 - p) for both p_oob [N, 2]: [N, 2 · embedding]."""
        share = unobserved[..., None]  # [N, 2, 1]
        return (self.directions * share - self.directions * (1 - share)).flatten(1)


class Stage2(nn.Module):
    """g: means and deviations of velocity and yaw rate, and a stop logit."""

    def __init__(self, config: Stage2Config) -> None:
        super().__init__()
        self.config = config
        self.network = ControlNetwork(config, outputs=5)
        raw = math.log(math.expm1(config.first_deviation - config.min_deviation))  # softplus turns it back
        first = torch.tensor([config.first_forward, 0.0, raw, raw, config.first_stop])
        with torch.no_grad():
            self.network.last.bias.copy_(first)

    def forward(self, view: EgoView) -> Control:
        """Actions in N contexts."""
        outputs = self.network(view)
        deviation = functional.softplus(outputs[:, 2:4]) + self.config.min_deviation
        return Control(outputs[:, :2], deviation, outputs[:, 4])


class ValueNetwork(nn.Module):
    """V: the expected return of N contexts; it shares nothing with stage 2."""

    def __init__(self, config: Stage2Config) -> None:
        super().__init__()
        self.network = ControlNetwork(config, outputs=1)

    def forward(self, view: EgoView) -> Tensor:
        """[N]."""
        return self.network(view)[:, 0]
