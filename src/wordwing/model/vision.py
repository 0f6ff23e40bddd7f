"""From an image to features: the paper's 13-layer residual network (paper: Semantic Mapping, figure of the ResNet)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from wordwing.model.layers import convolution, convolve_image, instance_norm, leaky

STRIDE = 4
"""Pixels from one feature to the next. Feature (i, j) is centred on the middle of pixel (4i, 4j), not of a 4×4
block."""


@dataclass(frozen=True)
class VisionConfig:
    """Size of the residual network."""

    channels: int = 32
    """Channels, C of the paper."""


def standardize(image: Tensor) -> Tensor:
    """Images [N, H, W, 3] uint8 to [N, 3, H, W] with mean 0 and variance 1, over all pixels and colours of each.

    An image of a single grey becomes zero.
    """
    pixels = image.permute(0, 3, 1, 2).float()
    variance, mean = torch.var_mean(pixels, dim=(1, 2, 3), correction=0, keepdim=True)
    return (pixels - mean) * torch.rsqrt(variance + 1.0)


class Block(nn.Module):
    """x + conv(conv(x)), with a norm before and a LeakyReLU after each; the second and the shortcut take the stride."""

    def __init__(self, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.first = convolution(channels, channels)
        self.second = convolution(channels, channels, stride)

    def forward(self, features: Tensor) -> Tensor:
        """[N, C, H, W] to [N, C, H / stride, W / stride]."""
        hidden = leaky(self.second(instance_norm(leaky(self.first(instance_norm(features))))))
        if self.stride > 1:  # the shortcut averages over 3×3 neighbours
            features = functional.avg_pool2d(features, 3, self.stride, padding=1, count_include_pad=False)
        return features + hidden


class ResNet(nn.Module):
    """F^C = ResNet(I): an image [N, 72, 128, 3] to features [N, 32, 18, 32]."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        channels = config.channels
        self.stem = convolution(3, channels)
        strides = (2, 1, 2, 1, 1, 1)
        self.blocks = nn.Sequential(*(Block(channels, stride) for stride in strides))

    def forward(self, image: Tensor) -> Tensor:
        """Features of images [N, H, W, 3] uint8: [N, C, H / 4, W / 4], each channel with mean 0 and variance 1.

        An image of a single grey, such as a lost frame, has none: they are zero.
        """
        pixels = standardize(image).contiguous(memory_format=torch.channels_last)
        features = instance_norm(self.blocks(convolve_image(self.stem, pixels)))
        # Without contrast the norms would make features of rounding errors, and gradients a million times too large.
        return torch.where((pixels != 0).any(dim=(1, 2, 3))[:, None, None, None], features, 0.0)
