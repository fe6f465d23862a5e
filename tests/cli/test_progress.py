"""What a command says while it works: a line, and seconds in a terminal alone."""

import sys
import time

import pytest

from bert_keras.cli.progress import progress

pytestmark = pytest.mark.once


@pytest.mark.parametrize("is_terminal", [False, True])
def test_seconds_are_counted_in_a_terminal_alone(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    with pytest.raises(ValueError, match="wrong"), progress("Exporting", every=0.01):
        time.sleep(0.05)
        raise ValueError("wrong")
    printed = capsys.readouterr().out
    if is_terminal:
        assert printed.count("\rExporting ... 0 s") > 2 and printed.endswith("\n")
    else:
        assert printed == "Exporting ...\n"
