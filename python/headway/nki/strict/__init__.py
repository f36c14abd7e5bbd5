"""What the vendor's compiler refuses and Python allows: found by reading a kernel's source, and that of all it calls.

Rules are those that AWS's documentation and release notes state (docs/nki-strict.md lists them with their versions). What a public
library of AWS's does is taken for legal where the two disagree.
"""

from headway.nki.strict.finding import RULES, Finding
from headway.nki.strict.recorded import of_error, of_recording
from headway.nki.strict.rules import findings

__all__ = ["RULES", "Finding", "findings", "of_error", "of_recording"]
