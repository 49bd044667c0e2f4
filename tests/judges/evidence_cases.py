"""Reads the labelled replies, golden and hand-written, as judges see them."""

import json
from pathlib import Path

from medground.judges.base import Conclusion, Criterion, Evidence, Landmark, Overlay, Quantity, Query, Request

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "cxreasondial"


def evidence(record):
    criterion, conclusion = record["criterion"], record["conclusion"]
    return Evidence(
        tuple(Quantity(**measured) for measured in record["measurements"]),
        Criterion(**criterion),
        tuple(Landmark(**landmark) for landmark in record["landmarks"]),
        Conclusion(conclusion["label"], conclusion["polarity"], tuple(conclusion["acceptable"])),
    )


def golden():
    """Rows of the golden set: (row, query, overlays)."""
    dialogues = {d["id"]: d for d in map(json.loads, (GOLDEN / "dialogues.jsonl").read_text().splitlines())}
    for row in map(json.loads, (GOLDEN / "replies.jsonl").read_text().splitlines()):
        dialogue = dialogues[row["dialogue"]]
        turn = dialogue["turns"][row["turn"]]
        requests = tuple(
            Request(r["task"], r["evidence_type"], evidence(r["evidence"]), tuple(row["asked"].get(r["task"], ())))
            for r in turn["requests"]
        )
        size = (dialogue["image"]["width"], dialogue["image"]["height"])
        overlays = tuple(Overlay(overlay["task"]) for overlay in row["overlays"])
        yield row, Query(turn["query"], requests, size, row["mode"] == "agent"), overlays


def hand(half=None):
    """Rows of the hand-labelled set, of one half or of both: (row, query, no overlays)."""
    contexts = json.loads((HERE / "hand_evidence.json").read_text())
    for row in map(json.loads, (HERE / "hand_replies.jsonl").read_text().splitlines()):
        if half in (None, row["half"]):
            requests = tuple(
                Request(contexts[name]["task"], "diagnostic", evidence(contexts[name]["evidence"]), tuple(asked))
                for name, asked in zip(row["contexts"], row["asked"], strict=True)
            )
            yield row, Query("", requests), ()
