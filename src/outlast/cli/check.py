"""`outlast check`: everything `serve` would say about a configuration, without a socket."""

import os
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.columns import print_columns
from outlast.cli.options import ConfigFile
from outlast.config.effective import effective
from outlast.config.load import Loaded, load
from outlast.errors import ConfigError, ConfigProblem


def check(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The configuration; default as for --config."),
    ] = None,
    config: ConfigFile = None,
    show_effective: Annotated[
        bool,
        typer.Option("--effective", help="Print every effective value and where it comes from."),
    ] = False,
    pool: Annotated[
        str | None,
        typer.Option("--pool", metavar="POOL", help="With --effective: as this pool sees it."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Judge as `serve --insecure` would.")
    ] = False,
) -> None:
    """Check a configuration. Exits 0 when `serve` would take it, 2 when not."""
    loaded = load(file or config or context.obj, os.environ, insecure=insecure)
    if pool is not None and pool not in loaded.topology.pools:
        names = ", ".join(loaded.topology.pools) or "none"
        raise ConfigError([ConfigProblem("--pool", f"no pool is called {pool!r}; pools: {names}")])
    for line in loaded.warnings:
        typer.echo(f"warning: {line}")
    for line in loaded.aliases:
        typer.echo(f"note: {line}")
    if show_effective or pool is not None:
        _print_effective(loaded, pool)
    typer.echo(_summary(loaded))


def _print_effective(loaded: Loaded, pool: str | None) -> None:
    rows = [(row.path, row.value, row.layer) for row in effective(loaded, pool)]
    print_columns(("key", "value", "from"), rows)


def _summary(loaded: Loaded) -> str:
    topology = loaded.topology
    counted = [
        (len(topology.providers), "provider"),
        (len(topology.deployments), "deployment"),
        (len(topology.pools), "pool"),
    ]
    parts = ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counted)
    source = {"file": "", "environment": " (from the environment)", "simulated": " (simulated)"}
    return f"ok: {parts}{source[loaded.origin]}"
