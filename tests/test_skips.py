import types

import pytest
from skips import ALLOWED_SKIPS, fail_if_skipped


def report(outcome="skipped", reason="could not import 'torch'", **options):
    longrepr = ("file", 1, f"Skipped: {reason}")
    return types.SimpleNamespace(outcome=outcome, longrepr=longrepr, **options)


@pytest.mark.parametrize(
    ("report", "flag", "outcome"),
    [
        (report(), "1", "failed"),
        (report(), "0", "skipped"),
        (report(wasxfail="reason"), "1", "skipped"),
        *((report(reason=reason), "1", "skipped") for reason in ALLOWED_SKIPS),
        *((report(outcome), "1", outcome) for outcome in ("passed", "failed")),
    ],
)
def test_a_skip_fails_where_every_test_must_run(monkeypatch, report, flag, outcome):
    monkeypatch.setenv("FAIL_ON_SKIPS", flag)
    assert fail_if_skipped(report).outcome == outcome
