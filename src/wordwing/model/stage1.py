"""Stage 1, f: from what has been seen and said to where to go (paper: Model, Stage 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from wordwing.interface import Domain
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each, filter_by_text, instance_norm, leaky
from wordwing.model.lingunet import LingUNet, LingUNetConfig, Words
from wordwing.model.text import InstructionEncoder, TextConfig, Tokens
from wordwing.model.vision import ResNet, VisionConfig
from wordwing.model.visitation import Scores
from wordwing.world.catalogue import catalogue


@dataclass(frozen=True)
class Stage1Config:
    """What stage 1 is made of."""

    vision: VisionConfig = field(default_factory=VisionConfig)
    text: TextConfig = field(default_factory=TextConfig)
    lingunet: LingUNetConfig = field(default_factory=LingUNetConfig)
    grounding: int = 8
    """Channels of R^W. The authors have 3; with 8, LingUNet's input has 40, which tensor cores take as they are."""
    observability: bool = True
    """PVN2's masks and p_oob; without them it is the earlier PVN."""
    mask_input: bool = False
    """Whether LingUNet also sees the observability mask M."""
    blank: Literal["nothing", "instruction", "image"] = "nothing"
    """An input that is kept from it, for the ablations without language and without vision."""
    phases: int = 1
    """Equal parts of the way, in order, that d^p is predicted for one by one; the paper has one d^p."""


@dataclass(frozen=True)
class Reading:
    """What N instructions ask of the maps; computed once for a flight."""

    instruction_embedding: Tensor
    """**u** [N, hidden]."""
    grounding: Tensor
    """K_G [N, 8, C]."""
    lingunet: tuple[Tensor, ...]
    """K_1 … K_L, [N, filtered, channels] each."""
    words: Words | None = None
    """What LingUNet's cells attend to, where they do."""

    def __getitem__(self, index: Tensor | slice) -> Reading:
        """Some of the instructions, or each as often as it has contexts."""
        return each(lambda tensor: tensor[index], self)


class Grounding(nn.Module):
    """K_G = W_G **u** + b_G and R^W = S^W ⊛ K_G."""

    def __init__(self, hidden: int, channels: int, outputs: int) -> None:
        super().__init__()
        self.shape = (outputs, channels)
        self.kernel = nn.Linear(hidden, outputs * channels)

    def kernels(self, instruction_embedding: Tensor) -> Tensor:
        """[N, hidden] to [N, 8, C]."""
        return self.kernel(instruction_embedding).unflatten(-1, self.shape)

    def forward(self, semantic_map: Tensor, kernels: Tensor) -> Tensor:
        """[N, C, 64, 64] to [N, 8, 64, 64]; normalised, so that the size of a kernel says nothing."""
        return instance_norm(leaky(filter_by_text(semantic_map, kernels)))


class Stage1(nn.Module):
    """f and f_S in one: they share all but the eyes, of which there is one pair for each domain."""

    def __init__(self, config: Stage1Config, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        channels, hidden = config.vision.channels, config.text.hidden
        self.vision = nn.ModuleDict({domain: ResNet(config.vision) for domain in ("sim", "lab")})
        self.text = InstructionEncoder(config.text, vocabulary_size)
        self.grounding = Grounding(hidden, channels, config.grounding)
        inputs = channels + config.grounding + config.mask_input
        self.lingunet = LingUNet(
            config.lingunet, inputs, hidden, unobserved=config.observability, outputs=config.phases + 1
        )

    def see(self, image: Tensor, domain: Domain) -> Tensor:
        """F^C [N, 32, 18, 32] of pictures [N, 72, 128, 3] uint8."""
        if self.config.blank == "image":
            image = torch.zeros_like(image)
        return self.vision[domain](image)

    @property
    def one_pair(self) -> bool:
        """Whether both domains have the same eyes."""
        sim, lab = (self.vision[domain].state_dict() for domain in ("sim", "lab"))
        return all(torch.equal(tensor, lab[name]) for name, tensor in sim.items())

    def lend_eyes(self) -> None:
        """Give the lab the simulator's eyes, for want of any that have learned."""
        self.vision["lab"].load_state_dict(self.vision["sim"].state_dict())

    def read(self, tokens: Tokens) -> Reading:
        """Understand N instructions."""
        if self.config.blank == "instruction":
            tokens = tokens.blank()
        embedding, states = self.text(tokens)
        return Reading(
            embedding,
            self.grounding.kernels(embedding),
            tuple(self.lingunet.kernels(embedding)),
            self.lingunet.words(states, tokens.known),
        )

    def ground(self, semantic_map: Tensor, reading: Reading) -> Tensor:
        """R^W [N, 8, 64, 64] of semantic maps [N, 32, 64, 64]."""
        return self.grounding(semantic_map, reading.grounding)

    def predict(self, semantic_map: Tensor, grounding_map: Tensor, observed: Tensor, reading: Reading) -> Scores:
        """Scores of N contexts.

        Args:
            semantic_map: S^W [N, 32, 64, 64].
            grounding_map: R^W [N, 8, 64, 64].
            observed: M^W [N, 64, 64] bool.
            reading: Of N instructions.
        """
        maps = [semantic_map, grounding_map]
        if self.config.mask_input:
            maps.append(observed[:, None].to(semantic_map.dtype))
        return self.lingunet(torch.cat(maps, dim=1), reading.lingunet, reading.words)

    def support(self, observed: Tensor) -> Tensor:
        """[N, 64, 64] bool: the cells that distributions reach over; for PVN all of them."""
        return observed if self.config.observability else torch.ones_like(observed)


class AuxiliaryHeads(nn.Module):
    """What stands here, was it spoken of, what was spoken of: read off by one linear layer each."""

    def __init__(self, config: Stage1Config) -> None:
        super().__init__()
        kinds = len(catalogue())
        self.object = nn.Linear(config.vision.channels, kinds + 1)
        self.grounding = nn.Linear(config.grounding, 2)
        self.mention = nn.Linear(config.text.hidden, kinds)

    @property
    def nothing(self) -> int:
        """The class of empty ground."""
        return self.object.out_features - 1

    def name(self, semantic_map: Tensor, points: Tensor) -> Tensor:
        """L_percept's logits: which landmark stands at points of S^W?

        Args:
            semantic_map: [N, 32, 64, 64] start frame.
            points: [N, P, 2] start frame, metres.

        Returns:
            [N, P, 90], in the catalogue's order, empty ground last.
        """
        return self.object(START_GRID.sample(semantic_map, points).mT)

    def mentioned(self, grounding_map: Tensor, points: Tensor) -> Tensor:
        """L_ground's logits [N, P, 2]: was what stands at points [N, P, 2] of R^W spoken of, no or yes?"""
        return self.grounding(START_GRID.sample(grounding_map, points).mT)

    def spoken(self, instruction_embedding: Tensor) -> Tensor:
        """L_lang's logits [N, 89]: was each kind of landmark spoken of? Above zero for yes."""
        return self.mention(instruction_embedding)
