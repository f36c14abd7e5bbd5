"""torch_xla.core.xla_model on the CPU."""

import torch


def xla_device(*_args):
    return torch.device("cpu")


def mark_step(*_args, **_kwargs):
    """Everything is done already."""
