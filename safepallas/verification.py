"""What `sp.verify` returns: a `Report` with its `Finding`s, each of a kind, and its `Note`s."""

from safepallas._verify.diagnostics.finding import Finding as Finding
from safepallas._verify.diagnostics.finding import FindingKind as FindingKind
from safepallas._verify.diagnostics.finding import Note as Note
from safepallas._verify.report.report import Report as Report

__all__ = ["Finding", "FindingKind", "Note", "Report"]

# Users and tracebacks name them by this module.
for _class in (Finding, FindingKind, Note, Report):
    _class.__module__ = __name__
del _class
