"""nki.builtin: what the vendor's front end adds to Python's builtins. Kernels run as ordinary Python here, so nothing."""
