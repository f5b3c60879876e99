"""What several commands take."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The configuration. Default: OUTLAST_CONFIG, else ./outlast.yaml, else the "
        "providers whose keys are in the environment, else simulated ones.",
    ),
]
"""May stand before the command and behind it; behind it wins."""
