"""A small network with batch norms in PyTorch: it trains a step, and is evaluated with its running statistics."""
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))  # LINE first_norm
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))

    def loss(self, _tokens, _targets):
        """Behind a pass in training, which moves the running statistics, the loss in evaluation."""
        draws = torch.Generator().manual_seed(2)
        images, labels = torch.randn(8, 1, 9, 9, generator=draws), torch.arange(8) % 3
        self.train()
        with torch.no_grad():
            for _ in range(3):
                self(3 * images + 1)
        self.ready()
        return nn.functional.cross_entropy(self(images), labels)

    def ready(self):
        """The network is to be evaluated."""
        self.eval()
