"""`outlast serve`: start the gateway and say what to try."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from outlast.cli.options import ConfigFile
from outlast.config.load import Loaded, load

MODELS_SHOWN = 8


def serve(
    context: typer.Context,
    config: ConfigFile = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Allow a listener beyond loopback that asks nobody for a key."
        ),
    ] = False,
) -> None:
    """Start the gateway. Stops on SIGTERM or Ctrl-C, after what runs has ended."""
    loaded = load(config or context.obj, os.environ, insecure=insecure)
    console = Console(highlight=False, soft_wrap=True)
    for line in loaded.warnings:
        print(f"warning: {line}", file=sys.stderr)
    for line in loaded.aliases:
        print(f"note: {line}", file=sys.stderr)
    from outlast import runtime  # what only a server needs is not loaded for --help

    def ready(process: runtime.Ready) -> None:
        console.print(_banner(loaded, process.host, process.port, process.models))
        sys.stdout.flush()

    _run(runtime.serve(loaded, os.environ, ready))


def _run(main: Coroutine[Any, Any, None]) -> None:
    if sys.platform == "win32":
        asyncio.run(main)
    else:
        import uvloop

        uvloop.run(main)


def _banner(loaded: Loaded, host: str, port: int, models: tuple[str, ...]) -> str:
    """What a person needs to know first."""
    at = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    lines = [f"[bold]Outlast is ready at {at}[/bold]"]
    if loaded.origin == "simulated":
        lines += [
            "[yellow]No configuration and no key found: the providers are simulated.[/yellow]",
            "Answers are made up, every answer says x-outlast-degraded: simulated.",
        ]
        example = "sim/flaky"
    else:
        example = models[0] if models else "MODEL"
        shown = ", ".join(models[:MODELS_SHOWN])
        more = len(models) - MODELS_SHOWN
        lines.append(escape(f"Models: {shown}" + (f" and {more} more" if more > 0 else "")))
    lines += [
        "",
        "Try:",
        escape(
            f"  curl -i {at}/v1/chat/completions -H 'content-type: application/json' "
            f"""-d '{{"model":"{example}","messages":[{{"role":"user","content":"Hello"}}]}}'"""
        ),
    ]
    if loaded.origin == "simulated":
        lines += [
            "",
            "Its first provider fails one call in three. Look for x-outlast-failovers: 1 in the",
            "answer's headers: the second provider answered, and you saw no error.",
        ]
    lines += ["", f"Stats: {at}/stats   Metrics: {at}/metrics   Stop: Ctrl-C"]
    return "\n".join(lines)
