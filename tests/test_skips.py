import types

import pytest
from skips import ALLOWED_SKIPS, fail_if_skipped


@pytest.mark.parametrize(
    ("reason", "flag", "outcome"),
    [
        ("could not import 'torch'", "1", "failed"),
        ("could not import 'torch'", "0", "skipped"),
        *((reason, "1", "skipped") for reason in ALLOWED_SKIPS),
    ],
)
def test_a_skip_fails_where_every_test_must_run(monkeypatch, reason, flag, outcome):
    monkeypatch.setenv("FAIL_ON_SKIPS", flag)
    report = types.SimpleNamespace(outcome="skipped", longrepr=("file", 1, f"Skipped: {reason}"))
    assert fail_if_skipped(report).outcome == outcome


def test_what_did_not_skip_stays_as_it_was(monkeypatch):
    monkeypatch.setenv("FAIL_ON_SKIPS", "1")
    for outcome in ("passed", "failed"):
        report = types.SimpleNamespace(outcome=outcome, longrepr=None)
        assert fail_if_skipped(report).outcome == outcome
    expected = types.SimpleNamespace(outcome="skipped", longrepr="", wasxfail="reason")
    assert fail_if_skipped(expected).outcome == "skipped"
