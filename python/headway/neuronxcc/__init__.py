"""``neuronxcc``: only its ``nki``, the kernel language before NKI 0.2."""
