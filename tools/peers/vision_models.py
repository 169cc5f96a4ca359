"""The convolutional networks of src/models in PyTorch, with the same names and shapes."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    """src/models/lenet.h: 3x3 convolutions, as the tutorials have it."""

    def __init__(self, channels=1, height=32, width=32, classes=10, filters=32, hidden=128):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, padding=1)
        self.conv2 = nn.Conv2d(filters, 2 * filters, 3, padding=1)
        self.fc1 = nn.Linear(2 * filters * (height // 4) * (width // 4), hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class Block(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    """src/models/resnet.h: torchvision's ResNet of basic blocks with a stem for small images."""

    def __init__(self, channels=3, classes=10, width=64, blocks=(2, 2, 2, 2)):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        into = width
        for i, count in enumerate(blocks):
            out = width << i
            stage = nn.Sequential(*(Block(into if b == 0 else out, out, 2 if i and b == 0 else 1)
                                    for b in range(count)))
            self.add_module(f"layer{i + 1}", stage)
            into = out
        self.fc = nn.Linear(into, classes)
        self.stages = [f"layer{i + 1}" for i in range(len(blocks))]

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        for stage in (getattr(self, name) for name in self.stages):
            x = stage(x)
        return self.fc(x.mean((2, 3)))
