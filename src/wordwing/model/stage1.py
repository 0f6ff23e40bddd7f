"""Stage 1, f: from images and an instruction to visitation distributions (paper: Model, Stage 1)."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from wordwing.frames import Pose
from wordwing.interface import Domain
from wordwing.model.grid import START_GRID
from wordwing.model.layers import filter_by_text, instance_norm, leaky
from wordwing.model.lingunet import LingUNet, LingUNetConfig, TokenKeys
from wordwing.model.text import InstructionEncoder, TextConfig, Tokens
from wordwing.model.vision import ResNet, VisionConfig
from wordwing.model.visitation import Scores
from wordwing.world.catalogue import catalogue


@dataclass(frozen=True)
class Stage1Config:
    """The parts of stage 1."""

    vision: VisionConfig = field(default_factory=VisionConfig)
    text: TextConfig = field(default_factory=TextConfig)
    lingunet: LingUNetConfig = field(default_factory=LingUNetConfig)
    grounding: int = 8
    """Channels of R^W. The authors have 3; with 8, LingUNet's input has 40, which tensor cores take as they are."""
    observability: bool = True
    """PVN2's masks and p_oob; without them it is the earlier PVN."""
    mask_input: bool = False
    """Whether the observability mask M is an input of LingUNet, too."""
    blank: Literal["nothing", "instruction", "image"] = "nothing"
    """An input that is replaced by a blank one, for the ablations without language and without vision."""
    phases: int = 1
    """Number of consecutive, equal parts of the path for which d^p is predicted separately; the paper has one d^p."""


@dataclass(frozen=True)
class TextKernels:
    """The convolution kernels computed from N instructions, once for each flight."""

    instruction_embedding: Tensor
    """**u** [N, hidden]."""
    grounding: Tensor
    """K_G [N, 8, C]."""
    lingunet: tuple[Tensor, ...]
    """K_1 … K_L, [N, filtered, channels] each."""
    tokens: TokenKeys | None = None
    """What LingUNet attends to, with `LingUNetConfig.attention`."""


@dataclass(frozen=True)
class Stage1Output:
    """Output of stage 1 for N contexts, from image features to scores; maps are in the start frame."""

    image_features: Tensor
    """F^C [N, 32, 18, 32]."""
    semantic_map: Tensor
    """S^W [N, 32, 64, 64]."""
    grounding_map: Tensor
    """R^W [N, 8, 64, 64]."""
    observed: Tensor
    """M^W [N, 64, 64] bool."""
    in_view: Tensor
    """[N, 64, 64] bool, the cells that the newest image shows."""
    scores: Scores
    """LingUNet's scores, before they are normalised."""
    pose: Pose
    """[N] of the drones, start frame."""


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
        """[N, C, 64, 64] to [N, 8, 64, 64]; normalised, so that the scale of a kernel does not matter."""
        return instance_norm(leaky(filter_by_text(semantic_map, kernels)))


class Stage1(nn.Module):
    """f and f_S in one: they share everything but the vision encoder, of which each domain has its own."""

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

    def encode_images(self, image: Tensor, domain: Domain) -> Tensor:
        """F^C [N, 32, 18, 32] of images [N, 72, 128, 3] uint8."""
        if self.config.blank == "image":
            image = torch.zeros_like(image)
        return self.vision[domain](image)

    @property
    def same_vision(self) -> bool:
        """Whether both domains' vision encoders have the same weights."""
        sim, lab = (self.vision[domain].state_dict() for domain in ("sim", "lab"))
        return all(torch.equal(tensor, lab[name]) for name, tensor in sim.items())

    def copy_vision(self) -> None:
        """Make the lab's vision encoder a copy of the simulator's, for a run that trains only the latter."""
        self.vision["lab"].load_state_dict(self.vision["sim"].state_dict())

    def encode_text(self, tokens: Tokens) -> TextKernels:
        """Encode N instructions and compute their kernels."""
        if self.config.blank == "instruction":
            tokens = tokens.blank()
        embedding, states = self.text(tokens)
        return TextKernels(
            embedding,
            self.grounding.kernels(embedding),
            tuple(self.lingunet.kernels(embedding)),
            self.lingunet.token_keys(states, tokens.known),
        )

    def predict(self, semantic_map: Tensor, observed: Tensor, kernels: TextKernels) -> tuple[Tensor, Scores]:
        """Ground the instructions in the maps and score every cell.

        Args:
            semantic_map: S^W [N, 32, 64, 64].
            observed: M^W [N, 64, 64] bool.
            kernels: Of N instructions.

        Returns:
            R^W [N, 8, 64, 64], and the scores of N contexts.
        """
        grounding_map = self.grounding(semantic_map, kernels.grounding)
        maps = [semantic_map, grounding_map]
        if self.config.mask_input:
            maps.append(observed[:, None].to(semantic_map.dtype))
        return grounding_map, self.lingunet(torch.cat(maps, dim=1), kernels.lingunet, kernels.tokens)

    def support(self, observed: Tensor) -> Tensor:
        """[N, 64, 64] bool: the cells that may have probability; for PVN all of them."""
        return observed if self.config.observability else torch.ones_like(observed)


class AuxiliaryHeads(nn.Module):
    """Linear classifiers of the auxiliary losses: which landmark, was it mentioned, which were mentioned."""

    def __init__(self, config: Stage1Config) -> None:
        super().__init__()
        kinds = len(catalogue())
        self.object = nn.Linear(config.vision.channels, kinds + 1)
        self.grounding = nn.Linear(config.grounding, 2)
        self.mention = nn.Linear(config.text.hidden, kinds)
        """Logits of L_lang [N, 89]: was each kind of landmark mentioned in the instructions? Above zero for yes."""

    @property
    def empty_class(self) -> int:
        """The class of empty ground."""
        return self.object.out_features - 1

    def object_logits(self, semantic_map: Tensor, points: Tensor) -> Tensor:
        """Logits of L_percept: which landmark stands at points of S^W?

        Args:
            semantic_map: [N, 32, 64, 64] start frame.
            points: [N, P, 2] start frame, metres.

        Returns:
            [N, P, 90], in the catalogue's order, empty ground last.
        """
        return self.object(START_GRID.sample(semantic_map, points).mT)

    def grounding_logits(self, grounding_map: Tensor, points: Tensor) -> Tensor:
        """Logits of L_ground [N, P, 2]: was the landmark at points [N, P, 2] of R^W mentioned, no or yes?"""
        return self.grounding(START_GRID.sample(grounding_map, points).mT)
