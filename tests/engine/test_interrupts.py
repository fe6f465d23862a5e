"""Signals wait within a block, and handlers are afterwards what they were."""

import contextlib
import signal
import threading

import pytest

from bert_keras.engine.interrupts import defer_signals, run_on_exit


@pytest.fixture
def came():
    """The numbers of signals in the order in which a handler of the test's was called."""
    numbers = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        signal.signal(number, lambda number, frame: numbers.append(number))
    yield numbers
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_signals_come_at_the_end_of_the_outermost_block_once_each(came):
    with defer_signals():
        with defer_signals():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
                signal.raise_signal(number)
        assert came == []
    assert sorted(came) == [signal.SIGINT, signal.SIGTERM]
    signal.raise_signal(signal.SIGINT)
    assert len(came) == 3


@pytest.mark.parametrize("error", [None, ValueError])
def test_handlers_are_put_back_and_all_called_whatever_ends_the_block(came, error):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    with pytest.raises(error or KeyboardInterrupt), defer_signals():
        if error:
            raise error
        for number in numbers:
            signal.raise_signal(number)
    assert came == ([] if error else [signal.SIGTERM])
    assert [signal.getsignal(number) for number in numbers] == before


def test_signals_without_a_handler_are_left_to_the_system():
    with defer_signals():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_other_threads_delay_no_signals(came):
    inside, goes_on = threading.Event(), threading.Event()

    def work():
        with defer_signals():
            inside.set()
            goes_on.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    signal.raise_signal(signal.SIGINT)
    assert came == [signal.SIGINT]
    goes_on.set()
    thread.join()


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_what_settles_is_called_whatever_ends_a_block(error):
    calls = []
    ends = pytest.raises(error) if error else contextlib.nullcontext()
    with ends, run_on_exit(lambda: calls.append(1)):
        assert not calls
        if error:
            raise error
    assert calls
