"""The vision encoder: standardised images and the residual network, against numpy."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from plain_layers import Array, convolve, leaky, norm
from wordwing.model.layers import count_parameters
from wordwing.model.vision import Block, ResNet, VisionConfig, standardize


def random_images(count: int, height: int = 72, width: int = 128) -> torch.Tensor:
    """[N, H, W, 3] uint8 with coarse and fine patterns."""
    random = torch.Generator().manual_seed(0)
    coarse = functional.interpolate(torch.rand(count, 3, 5, 7, generator=random), size=(height, width), mode="bilinear")
    pixels = 200 * coarse + 55 * torch.rand(count, 3, height, width, generator=random)
    return pixels.byte().permute(0, 2, 3, 1)


def test_the_eyes_have_as_many_parameters_as_the_authors():
    first, other = 3 * 32 * 9 + 32, 32 * 32 * 9 + 32
    assert count_parameters(ResNet(VisionConfig())) == 111_872 == first + 12 * other


def test_an_image_becomes_18_by_32_features_of_32_channels_each_with_mean_0_and_variance_1():
    torch.manual_seed(0)
    features = ResNet(VisionConfig())(random_images(2))
    assert features.shape == (2, 32, 18, 32)
    assert features.mean((2, 3)).abs().max() < 1e-4
    assert features.var((2, 3), correction=0).detach().numpy() == pytest.approx(1, abs=1e-3)


def test_images_are_standardised_by_one_mean_and_one_deviation_over_pixels_and_colours():
    images = random_images(3)
    found = standardize(images)
    assert found.shape == (3, 3, 72, 128)
    for image, standard in zip(images.double().numpy(), found, strict=True):
        expected = (image - image.mean()) / image.std()
        assert np.allclose(standard.permute(1, 2, 0), expected, atol=2e-3)


def test_a_hand_computed_standardisation():
    image = torch.zeros(1, 2, 2, 3, dtype=torch.uint8)
    image[0, :, 0] = 200
    # Mean 100, variance 10,000, and 1 more against division by zero.
    assert standardize(image)[0, 0].flatten().tolist() == pytest.approx([1, -1, 1, -1], abs=1e-4)


@pytest.mark.parametrize("level", [0, 17, 255])
def test_an_image_of_a_single_grey_becomes_zero(level):
    assert not standardize(torch.full((1, 72, 128, 3), level, dtype=torch.uint8)).any()


def plain_block(features: Array, block: Block) -> Array:
    branch = leaky(convolve(norm(features), block.first))
    branch = leaky(convolve(norm(branch), block.second))
    if block.stride == 1:
        return features + branch
    averaged = np.zeros_like(branch)
    for c, row, column in np.ndindex(branch.shape):
        top, left = max(2 * row - 1, 0), max(2 * column - 1, 0)
        averaged[c, row, column] = features[c, top : 2 * row + 2, left : 2 * column + 2].mean()
    return averaged + branch


def test_the_residual_network_agrees_with_numpy():
    torch.manual_seed(0)
    network = ResNet(VisionConfig(channels=3))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    image = random_images(1, 24, 40)
    pixels = image[0].double().numpy().transpose(2, 0, 1)
    features = convolve((pixels - pixels.mean()) / np.sqrt(pixels.var() + 1), network.stem)
    for block, stride in zip(network.blocks, (2, 1, 2, 1, 1, 1), strict=True):
        assert block.stride == stride
        features = plain_block(features, block)
    assert np.allclose(network(image)[0].detach(), norm(features), atol=1e-3)


def test_brightness_and_contrast_of_the_whole_image_change_nothing():
    torch.manual_seed(0)
    network = ResNet(VisionConfig())
    dark = torch.randint(0, 100, (1, 72, 128, 3), dtype=torch.uint8)
    features = network(dark)
    assert torch.allclose(network(dark + 50), features, atol=1e-3)
    assert torch.allclose(network(2 * dark), features, atol=0.02)


def test_an_image_without_contrast_has_no_features_and_no_gradients_among_others_that_have():
    torch.manual_seed(0)
    network = ResNet(VisionConfig(channels=8))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.05)
    images, weights = random_images(3), torch.randn(3, 8, 18, 32)
    gradients = []
    for middle in (slice(0, 3, 2), slice(0, 3)):
        some = images.clone()
        some[1] = 0
        network.zero_grad()
        features = network(some[middle])
        (features * weights[middle]).sum().backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in network.parameters()]))
    assert not features[1].any()
    assert features[0].any()
    assert torch.allclose(gradients[0], gradients[1], rtol=1e-3, atol=1e-2)
