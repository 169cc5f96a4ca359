"""Another number of threads, whose sums are in another order."""
import torch


def plant(model):
    torch.set_num_threads(1)
