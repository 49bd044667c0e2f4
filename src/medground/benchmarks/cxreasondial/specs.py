"""What the metrics of dialogues are."""

from __future__ import annotations

from medground.metrics.spec import MetricSpec, register

SPECS: tuple[MetricSpec, ...] = (
    MetricSpec("faithfulness", "Faith", note="replies that agree with the evidence", floor_metric="floor_faithfulness"),
    MetricSpec("coverage", "Cov", note="replies that give everything asked for, right or wrong"),
    MetricSpec("hallucination", "Hall", direction="lower", note="covered and not faithful"),
    MetricSpec("average_success", "Avg", note="mean over dialogues of the share of successful applicable turns"),
    MetricSpec("strict_success", "Strict", note="dialogues in which every applicable turn succeeds"),
    MetricSpec("strict_first", "Strict, first requests", note="without turns whose answer is in the history"),
    MetricSpec("dti", "DTI", note="agents: the requested tasks were planned"),
    MetricSpec("eti", "ETI", note="agents: the requested evidence types were planned"),
    MetricSpec("average_all_turns", "Avg, all turns", direction="neither", note="the commonly quoted recipe"),
    MetricSpec("copied", "Copied", direction="lower", note="replies with a number of the history that is wrong here"),
    MetricSpec("copied_not_seen", "Copied, not seen", unit="points", direction="neither", bounds=(-1.0, 1.0),
               statistic="other", note="Faith with reference history minus Faith with own history"),
    MetricSpec("kappa_coverage", "Kappa of two judges, Cov", unit="none", family="agreement", statistic="agreement",
               bounds=(-1.0, 1.0), digits=2),
    MetricSpec("kappa_faithfulness", "Kappa of two judges, Faith", unit="none", family="agreement",
               statistic="agreement", bounds=(-1.0, 1.0), digits=2),
    MetricSpec("floor_faithfulness", "Faith of the best floor", direction="neither"),
    MetricSpec("floor_average", "Avg of the best floor", direction="neither"),
    MetricSpec("floor_strict", "Strict of the best floor", direction="neither"),
)  # fmt: skip
STAGES: tuple[MetricSpec, ...] = (
    MetricSpec("completion", "Completion", direction="neither", note="right final decisions of the walks started"),
    MetricSpec("printed", "Score as printed", direction="neither",
               note="completion as the paper prints it: Wilson's centre times one minus his half-width"),
    MetricSpec("depth", "Depth", unit="none", direction="neither", family="score", bounds=None, digits=2,
               note="mean number of stages passed, of four (guided: three)"),
    MetricSpec("consistency", "Consistency", direction="neither", note="right first decisions among right final ones"),
    MetricSpec("alignment", "Alignment", direction="neither", note="stated values inside the chosen range"),
)  # fmt: skip
register(*SPECS, *STAGES, benchmark="cxreasondial")
