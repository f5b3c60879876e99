"""`outlast explain`: the plan of a request, printed without sending anything."""

import os
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.columns import print_columns
from outlast.cli.faults import EXIT_OTHER
from outlast.cli.options import ConfigFile
from outlast.config.load import load
from outlast.errors import ConfigError, ConfigProblem
from outlast.model.plan import Candidate, Plan
from outlast.protocols.table import DIALECTS
from outlast.routing.planner import plan as plan_request
from outlast.routing.resolve import Index

HEAD = ("", "deployment", "provider", "first token", "whole answer", "tries", "trips at")


def explain(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="A pool, model or deployment, as a caller says it."),
    ] = None,
    config: ConfigFile = None,
    body: Annotated[
        Path | None,
        typer.Option("--body", metavar="FILE", help="A request body; its model is explained."),
    ] = None,
) -> None:
    """Print who would be asked in which order, and what bounds it. Sends nothing."""
    if (model is None) == (body is None):
        raise typer.BadParameter("give a MODEL or --body FILE, one of them")
    loaded = load(config or context.obj, os.environ, insecure=True)
    if loaded.discover:
        names = ", ".join(loaded.discover)
        typer.echo(f"note: the models of {names} are listed at start and are unknown here")
    stream = None
    if body is not None:
        request = DIALECTS["openai"].decode(_read(body))
        model, stream = request.model, request.stream
    assert model is not None
    index = Index(loaded.topology)
    if index.find(model) is None:
        names = ", ".join(index.names()) or "none"
        typer.echo(f"outlast: No model, pool or deployment is called {model!r}.", err=True)
        typer.echo(f"Names: {names}", err=True)
        raise typer.Exit(EXIT_OTHER)
    _print(plan_request(model, index), stream=stream)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = ConfigProblem("--body", f"cannot read {str(path)!r}: {error.strerror}")
        raise ConfigError([problem]) from error


def _print(plan: Plan, *, stream: bool | None) -> None:
    kind = "" if stream is None else f" ({'stream' if stream else 'whole answer'})"
    print(f"{plan.asked}{kind}: strategy {plan.strategy}, label {plan.label}")
    last = len(plan.candidates)
    rows = [
        (str(number), *_row(candidate, last=number == last))
        for number, candidate in enumerate(plan.candidates, 1)
    ]
    print_columns(HEAD, rows)
    for skipped in plan.skipped:
        print(f"skipped {skipped.deployment}: {skipped.reason.value}")
    policy = plan.policy
    hops = "all" if policy.max_failovers is None else policy.max_failovers
    print(f"deadline {policy.deadline_s:g} s, failovers at most {hops}")
    print(
        f"upstream calls at most {plan.calls_max}: {plan.attempts_max} attempts, and for each one "
        "replacement of a stale connection"
    )
    if not plan.candidates:
        print("nobody is left: a request would get 503 unavailable_route")


def _row(candidate: Candidate, *, last: bool) -> list[str]:
    timeouts = candidate.policy.timeouts
    first_s = timeouts.first_token_last_s if last else timeouts.first_token_s
    breaker = candidate.policy.breaker
    trips = breaker.consecutive_failures if breaker.enabled else None
    return [
        candidate.deployment,
        candidate.provider,
        "no limit" if first_s is None else f"{first_s:g} s",
        f"{timeouts.request_s:g} s",
        str(candidate.policy.retry.max_attempts),
        "never" if trips is None else f"{trips} in a row",
    ]
