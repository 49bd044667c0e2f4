"""The trust report: every model of a suite against every question that was asked, on one page."""
