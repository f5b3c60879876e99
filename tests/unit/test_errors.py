"""Errors say what, where and what to do."""

from outlast.errors import (
    ConfigError,
    ConfigProblem,
    invalid_parameter,
    invalid_request,
    model_not_found,
)


def test_all_problems_are_in_one_error_each_with_its_path():
    error = ConfigError([ConfigProblem("a.b", "must be > 0"), ConfigProblem("", "no file")])
    assert str(error) == "a.b: must be > 0\nno file"
    assert len(error.problems) == 2


def test_final_errors_carry_their_words():
    assert (invalid_request("x").status, invalid_request("x").gateway_code) == (
        400,
        "invalid_request",
    )
    assert invalid_parameter("n", "x").param == "n"
    missing = model_not_found("nope")
    assert (missing.status, missing.param, missing.retryable) == (404, "model", False)
    assert "'nope'" in missing.message
