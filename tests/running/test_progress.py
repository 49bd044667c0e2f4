from __future__ import annotations

import io

import pytest
from rich.console import Console

from medground.running.progress import BarProgress, LineProgress, Progress, duration, progress_on


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_line_every_tenth_of_the_work():
    stream, clock = io.StringIO(), Clock()
    progress = LineProgress(stream, clock)
    progress.start(total=100, done=20)
    progress.title("clip/nih")
    for i in range(80):
        clock.now += 0.5
        progress.advance(failed=i == 0)
    progress.stop()
    lines = stream.getvalue().splitlines()
    assert lines[0] == " 30 %  30/100 items, 2.0/s, 1 failed, 35 s left  clip/nih"
    assert len(lines) == 8
    assert lines[-1].startswith("100 %  100/100 items")


def test_a_line_every_ten_seconds_when_work_is_slow():
    stream, clock = io.StringIO(), Clock()
    progress = LineProgress(stream, clock)
    progress.start(total=1000, done=0)
    for _ in range(6):
        clock.now += 6
        progress.advance()
    assert len(stream.getvalue().splitlines()) == 3


def test_messages_come_at_once_and_no_time_passing_is_no_trouble():
    stream = io.StringIO()
    progress = LineProgress(stream, Clock())
    progress.say("resuming")
    progress.start(total=1, done=0)
    progress.advance()
    assert stream.getvalue() == "resuming\n100 %  1/1 items, 0.0/s\n"


def test_the_bar_shows_numbers_failures_and_messages():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    progress = BarProgress(console)
    progress.say("[not markup]")
    progress.start(total=4, done=1)
    progress.title("clip/nih [x]")
    progress.advance()
    progress.advance(failed=True)
    progress.stop()
    text = console.file.getvalue()
    assert "[not markup]" in text
    assert "clip/nih [x]" in text
    assert "3/4" in text
    assert ", 1 failed" in text


def test_a_run_that_stops_before_it_starts_shows_no_bar():
    console = Console(file=io.StringIO(), force_terminal=True)
    BarProgress(console).stop()
    assert "0/" not in console.file.getvalue()


def test_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch):
    stream = io.StringIO()
    assert isinstance(progress_on(stream), LineProgress)
    assert isinstance(progress_on(), Progress)
    monkeypatch.setattr(stream, "isatty", lambda: True)
    assert isinstance(progress_on(stream), BarProgress)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_times_for_people(seconds, text):
    assert duration(seconds) == text
