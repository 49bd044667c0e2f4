"""The one ResNet of the house: the usual one (torchvision's names) and CLIP's modified one.

Sources: He et al. 2016, with the stride on the 3x3 convolution as in torchvision; Radford et al. 2021 for the variant
with a stem of three convolutions and average pooling in place of strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn
from torch.nn import functional

BLOCKS = (3, 4, 6, 3)
WIDTHS = (64, 128, 256, 512)
EXPANSION = 4


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions beside a shortcut.

    Args:
        channels: channels that come in.
        width: channels of the 3x3 convolution; four times as many go out.
        stride: how much the block shrinks.
        antialias: shrink by average pooling (CLIP) rather than by strides.
    """

    def __init__(self, channels: int, width: int, stride: int, antialias: bool) -> None:
        super().__init__()
        out = width * EXPANSION
        self.shrink = stride if antialias else 1
        step = 1 if antialias else stride
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, step, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample: nn.Sequential | None = None
        if stride > 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, step, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, channels, H, W)`` to ``(N, 4 width, H / stride, W / stride)``."""
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(self._pool(y)))
        shortcut = x if self.downsample is None else self.downsample(self._pool(x))
        return functional.relu(y + shortcut)

    def _pool(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, self.shrink) if self.shrink > 1 else x


class ResNet(nn.Module):
    """A ResNet of bottlenecks, without its head.

    Args:
        blocks: of each stage that is kept.
        width: channels of the stem; stage i works at ``width * 2 ** i`` and gives four times as many.
        clip_style: CLIP's modified network.
    """

    def __init__(self, blocks: Sequence[int] = BLOCKS, width: int = 64, *, clip_style: bool = False) -> None:
        super().__init__()
        self.clip_style = clip_style
        if clip_style:
            half = width // 2
            self.conv1 = nn.Conv2d(3, half, 3, 2, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(half)
            self.conv2 = nn.Conv2d(half, half, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(half)
            self.conv3 = nn.Conv2d(half, width, 3, padding=1, bias=False)
            self.bn3 = nn.BatchNorm2d(width)
        else:
            self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
        self.names = [f"layer{i + 1}" for i in range(len(blocks))]
        channels = width
        for stage, (name, count) in enumerate(zip(self.names, blocks, strict=True)):
            inner = width * 2**stage
            first = Bottleneck(channels, inner, 1 if stage == 0 else 2, clip_style)
            channels = inner * EXPANSION
            rest = [Bottleneck(channels, inner, 1, clip_style) for _ in range(count - 1)]
            self.add_module(name, nn.Sequential(first, *rest))
        self.channels = channels

    def stem(self, x: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to ``(N, width, H / 4, W / 4)``."""
        x = functional.relu(self.bn1(self.conv1(x)))
        if not self.clip_style:
            return functional.max_pool2d(x, 3, 2, padding=1)
        x = functional.relu(self.bn2(self.conv2(x)))
        return functional.avg_pool2d(functional.relu(self.bn3(self.conv3(x))), 2)

    def stages(self, x: Tensor) -> list[Tensor]:
        """Return the features after the stem and after each stage."""
        features = [self.stem(x)]
        for name in self.names:
            features.append(cast("nn.Module", getattr(self, name))(features[-1]))
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to the last stage's features ``(N, channels, h, w)``."""
        x = self.stem(x)
        for name in self.names:
            x = getattr(self, name)(x)
        return x


class ResNet50(ResNet):
    """ResNet-50 without its head.

    Args:
        stages: how many of the four residual stages to keep: 3 gives stride 16 and 1024 channels, 4 gives 32 and 2048.
        clip_style: CLIP's modified network.
    """

    def __init__(self, stages: int = 4, clip_style: bool = False) -> None:
        super().__init__(BLOCKS[:stages], clip_style=clip_style)


def sequential_names(name: str) -> str:
    """Return the name that a ResNet's entry has when its children were put in a row without names.

    ``conv1.weight`` becomes ``0.weight``, ``layer1.0.bn1.bias`` becomes ``4.0.bn1.bias``: children 2 and 3 are the
    ReLU and the pooling, which hold nothing.
    """
    children = {"conv1": "0", "bn1": "1", "layer1": "4", "layer2": "5", "layer3": "6", "layer4": "7"}
    first, _, rest = name.partition(".")
    return f"{children[first]}.{rest}"
