"""nki.compiler.frontend: the vendor's front ends. They exist as names; kernels run as ordinary Python
here.
"""

from headway.nki.errors import Unsupported


class NKIFrontend:
    """A front end of the vendor's compiler."""

    def __call__(self, *_args, **_kwargs):
        raise Unsupported(f"{type(self).__name__} needs the vendor's compiler")


class ParserFrontend(NKIFrontend):
    pass


class TracerFrontend(NKIFrontend):
    pass
