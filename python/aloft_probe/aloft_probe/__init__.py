"""Writes what a PyTorch model computes in a training step, for `aloft probe compare` and msprobe's tools."""
from aloft_probe.probe import Probe

__all__ = ["Probe"]
