"""What each figure of this benchmark is: title, direction, floor."""

from __future__ import annotations

from medground.metrics.spec import MetricSpec, register

CLOSED = (
    MetricSpec(
        "balanced_accuracy",
        "Balanced accuracy",
        statistic="mean",
        floor="constant answer",
        floor_value=0.5,
        note="non-answers count as wrong; on swapped quartets, whoever ignores words, region or picture is at 50",
    ),
    MetricSpec("quartets_right", "All eight of a quartet right", floor="chance", note="one quartet, eight questions"),
    MetricSpec("precision", "Precision of yes", statistic="ratio", floor="prevalence"),
    MetricSpec("recall", "Recall of yes"),
    MetricSpec("f1_yes", "F1 of yes", statistic="f1", floor="all positive"),
    MetricSpec("macro_f1", "F1, mean of yes and no", statistic="other"),
    MetricSpec("specificity", "Specificity"),
    MetricSpec("accuracy", "Accuracy", floor="constant answer"),
    MetricSpec("mcc", "Matthews correlation", "none", family="score", statistic="other", bounds=(-1, 1), digits=2),
    MetricSpec("yes_ratio", "Share of yes", direction="neither", note="an even build has half"),
    MetricSpec("non_answers", "Non-answers", direction="lower", note="uncertain, refused or unreadable"),
)
OPEN = tuple(
    MetricSpec(f"open_{name}", f"Open {name}", statistic="ratio", note=note)
    for name, note in (
        ("precision", "micro; a normal region is the label 'No finding'"),
        ("recall", "micro; a normal region is the label 'No finding'"),
        ("f1", "micro; a normal region is the label 'No finding'"),
        ("f1_abnormal", "micro; normal regions left out"),
        ("f1_kept_empty", "micro; normal regions can only add false positives"),
    )
)
FLIPS = (
    MetricSpec("tpt_anatomy", "TPT, anatomy swapped", note="share of the yes that turns into no"),
    MetricSpec("tpt_disease", "TPT, finding swapped", note="share of the yes that turns into no"),
    MetricSpec("tpt", "TPT, both swaps", note="both swaps in one denominator"),
    MetricSpec("vpt", "VPT, region pasted", note="share of the yes that turns into no"),
    MetricSpec("vpt_lung", "VPT, whole lung pasted", note="for findings that no third of a lung holds"),
    MetricSpec("vpt_redrawn", "VPT, drawn without the finding", note="phantoms: exact, nothing is left of it"),
)
CONTROLS = tuple(
    MetricSpec(name, f"Kept: {title}", note="share of the yes that stays yes, as it should")
    for name, title in (
        ("paraphrase", "other words"),
        ("swap_to_positive", "another pair that holds"),
        ("positive_donor", "region of a positive donor"),
        ("own_region_back", "own region pasted back"),
        ("other_region", "another region pasted"),
    )
)
MASKS = (
    MetricSpec("mask_dice", "Dice of the model's regions", family="overlap", note="its masks of anatomies, by picture"),
    MetricSpec("mask_iou", "IoU of the model's regions", family="overlap", note="its masks of anatomies, by picture"),
)
SPECS = (*CLOSED, *OPEN, *FLIPS, *CONTROLS, *MASKS)

register(*SPECS, benchmark="heal_medvqa")
