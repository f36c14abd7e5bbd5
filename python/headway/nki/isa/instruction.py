"""What functions of nki.isa return: the recorded instruction."""

from __future__ import annotations

from headway import _chip
from headway.nki.errors import KernelError


class NkiInstruction(int):
    """A recorded instruction; as a number, its place in the program of its core.

    It is good for one thing, ``depends_on``; results are in the instruction's ``dst``.
    """

    __slots__ = ()

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Makes this instruction wait for ``producers``, beyond the order that their operands give. Returns
        itself.

        KernelError outside a kernel; TypeError where a producer is no instruction; KernelError where one
        isn't recorded before this one.
        """
        trace = _chip.current()
        if trace is None:
            raise KernelError(
                "depends_on can only be called inside the kernel that recorded the instruction [outside]"
            )
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                raise TypeError(
                    f"depends_on: an instruction, as functions of nki.isa return, is wanted, not {producer!r}"
                )
            if int(producer) >= int(self):
                raise KernelError(
                    f"depends_on: instruction {int(self)} can only wait for one recorded before it, "
                    f"not for instruction {int(producer)} [depends-on]"
                )
            trace.edge(int(producer), int(self))
        return self

    def __repr__(self) -> str:
        return f"<nki instruction {int(self)}>"
