"""torch_xla on the CPU, as far as drivers of kernels use it."""

import torch


def device(index=None):
    return torch.device("cpu")


def sync(*_args, **_kwargs):
    """Everything is done already."""
