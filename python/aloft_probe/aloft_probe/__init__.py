"""Writes what a PyTorch model computes in a training step, for `aloft probe compare` and msprobe's tools."""
from aloft_probe.lightning import probe_lightning
from aloft_probe.probe import Probe
from aloft_probe.trainer import probe_trainer

__all__ = ["Probe", "probe_lightning", "probe_trainer"]
