"""The commands and what they share: which configuration is meant."""

from typing import Annotated

import typer

from outlast import __version__
from outlast.cli.check import check
from outlast.cli.explain import explain
from outlast.cli.options import ConfigFile
from outlast.cli.serve import serve

app = typer.Typer(
    name="outlast",
    help="A self-hosted LLM gateway: a provider's bad hour costs a little latency, not an error.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"outlast {__version__}")
        raise typer.Exit


@app.callback()
def _outlast(
    context: typer.Context,
    config: ConfigFile = None,
    _asked: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    context.obj = config


app.command()(serve)
app.command()(check)
app.command()(explain)
