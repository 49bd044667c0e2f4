import threading
import warnings

import pytest

from medground.imaging._quiet import quiet

PYDICOM = {"filename": "x.py", "lineno": 1, "module": "pydicom.valuerep"}


def warn_as_pydicom():
    warnings.warn_explicit("a long value", UserWarning, registry={}, **PYDICOM)


def test_pydicom_is_silent_inside_only():
    with pytest.raises(UserWarning):
        warn_as_pydicom()
    with quiet():
        warn_as_pydicom()
        with quiet():
            warn_as_pydicom()
        warn_as_pydicom()
    with pytest.raises(UserWarning):
        warn_as_pydicom()


def test_others_are_heard_inside():
    with quiet(), pytest.raises(UserWarning):
        warnings.warn("something else", UserWarning, stacklevel=1)


def test_filters_are_as_before_even_after_an_error():
    before = list(warnings.filters)
    with pytest.raises(ZeroDivisionError), quiet():
        raise ZeroDivisionError
    assert list(warnings.filters) == before


def test_the_last_thread_turns_the_sound_on():
    before, inside, leave = list(warnings.filters), threading.Event(), threading.Event()

    def stay():
        with quiet():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(10)
    with quiet():
        pass
    warn_as_pydicom()  # the other thread is still inside
    leave.set()
    thread.join()
    assert list(warnings.filters) == before


def test_filters_that_somebody_else_put_back_do_not_matter():
    before = list(warnings.filters)
    with warnings.catch_warnings():
        with quiet():
            warnings.resetwarnings()
        assert not warnings.filters
    assert list(warnings.filters) == before
