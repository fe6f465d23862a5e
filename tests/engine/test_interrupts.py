"""Signals wait within a block, and handlers are afterwards what they were."""

import signal
import threading

import pytest

from bert_keras.engine.interrupts import settled_by, signals_wait


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
    with signals_wait():
        with signals_wait():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
                signal.raise_signal(number)
        assert came == []
    assert sorted(came) == [signal.SIGINT, signal.SIGTERM]
    signal.raise_signal(signal.SIGINT)
    assert len(came) == 3


def test_what_a_handler_raises_leaves_the_block_and_all_others_are_called(came):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), signals_wait():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert came == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_exception_in_the_block_puts_handlers_back(came):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="wrong"), signals_wait():
        raise ValueError("wrong")
    assert signal.getsignal(signal.SIGINT) is before


def test_signals_that_are_left_to_the_system_stay_so():
    with signals_wait():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_other_threads_hold_up_nothing(came):
    inside, goes_on = threading.Event(), threading.Event()

    def work():
        with signals_wait():
            inside.set()
            goes_on.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    signal.raise_signal(signal.SIGINT)
    assert came == [signal.SIGINT]
    goes_on.set()
    thread.join()


def test_what_settles_is_called_whatever_ends_a_block():
    calls = []
    with settled_by(lambda: calls.append(1)):
        assert not calls
    assert calls
    for error in (ValueError, KeyboardInterrupt):
        calls.clear()
        with pytest.raises(error), settled_by(lambda: calls.append(1)):
            raise error
        assert calls
