"""What the metrics of Medical-Checklist are."""

from __future__ import annotations

from medground.metrics.spec import MetricSpec

_SIGNED = (-1.0, 1.0)

SPECS: tuple[MetricSpec, ...] = (
    MetricSpec("accuracy", "Accuracy", floor="chance", floor_value=0.5, note="unparsed answers as the policy says"),
    MetricSpec("pair_accuracy", "Pair accuracy", floor="chance", floor_value=0.25, note="both members of a pair"),
    MetricSpec("accuracy_excluded", "Accuracy, unparsed excluded", floor="chance", floor_value=0.5),
    MetricSpec("accuracy_wrong", "Accuracy, unparsed wrong"),
    MetricSpec("accuracy_half", "Accuracy, unparsed half", floor="chance", floor_value=0.5),
    MetricSpec("coverage", "Answers parsed", direction="neither"),
    MetricSpec("brier", "Brier score", "none", "lower", "loss", floor="chance", floor_value=0.25, digits=4),
    MetricSpec("log_loss", "Log loss (natural)", "none", "lower", "loss", bounds=None, floor="chance",
               floor_value=0.693147, digits=4),
    MetricSpec("ece", "Calibration error", "none", "lower", "loss", statistic="other", digits=4),
    MetricSpec("accuracy_blank", "Accuracy, blank picture", direction="neither"),
    MetricSpec("accuracy_shuffled", "Accuracy, another picture", direction="neither"),
    MetricSpec("blind", "Best blind scorer", direction="neither"),
    MetricSpec("gain_blind", "Visual gain over the best blind scorer", unit="points", bounds=_SIGNED, floor="zero",
               floor_value=0.0),
    MetricSpec("gain_blank", "Gain over the blind twin", unit="points", bounds=_SIGNED, floor="zero", floor_value=0.0),
    MetricSpec("gain_shuffled", "Gain over another picture", unit="points", bounds=_SIGNED, floor="zero",
               floor_value=0.0),
    MetricSpec("accuracy_blind_wrong", "Accuracy where the blind are wrong", floor="chance", floor_value=0.5),
    MetricSpec("flip_rate", "Choice flips with the order", direction="neither"),
    MetricSpec("consistent", "Right in both orders", floor="chance", floor_value=0.25),
    MetricSpec("position_bias", "Position bias (mean P(A) - .5)", unit="points", direction="neither", bounds=_SIGNED),
    MetricSpec("preference", "Wins as either term", direction="neither"),
    MetricSpec("wins_as_replacement", "Wins as replacement", direction="neither"),
)  # fmt: skip
