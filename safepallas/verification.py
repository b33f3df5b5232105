"""What `sp.verify` returns: a `Report` with its `Finding`s, each of a `FindingKind`."""

from safepallas._verify.diagnostics.finding import Finding as Finding
from safepallas._verify.diagnostics.finding import FindingKind as FindingKind
from safepallas._verify.report.report import Report as Report

__all__ = ["Finding", "FindingKind", "Report"]

# Users and tracebacks name them by this module.
for _class in (Finding, FindingKind, Report):
    _class.__module__ = __name__
del _class
