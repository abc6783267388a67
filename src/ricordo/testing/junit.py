"""Reports of recall tests as JUnit XML, which CI servers display."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ricordo.testing.runner import Report


def junit(reports: Sequence[Report]) -> str:
    """Return reports as one XML document."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        chosen = ", ".join(f"{name}={value}" for name, value in report.configuration.items())
        name = f"{report.path} ({chosen})" if chosen else str(report.path)
        failed = len(report.outcomes) - report.passed
        suite = ElementTree.SubElement(
            root, "testsuite", name=name, tests=str(len(report.outcomes)), failures=str(failed), errors="0"
        )
        for each in report.outcomes:
            case = ElementTree.SubElement(
                suite, "testcase", classname=str(report.path), name=_plain(each.case.ask), time=f"{each.seconds:.3f}"
            )
            if each.failures:
                failure = ElementTree.SubElement(case, "failure", message=_plain(each.failures[0]))
                failure.text = _plain("\n".join((*each.failures, "", "Found:", *each.found)))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _plain(text: str) -> str:
    """Return a text without the control characters that XML does not allow."""
    return "".join(char for char in text if char in "\n\t" or char.isprintable())
