"""The `outlast` command: `serve`, `check`, `explain`. One small file each.

Exit codes: 0 done, 2 the configuration cannot be used, 1 anything else that keeps it from
starting. What a command prints goes to stdout, what is wrong to stderr.
"""

import sys

from outlast.cli.app import app
from outlast.cli.faults import report
from outlast.errors import ConfigError, GatewayError, StartError


def main() -> None:
    """Entry point of the installed command."""
    try:
        app(standalone_mode=True)
    except (ConfigError, GatewayError, StartError) as error:
        sys.exit(report(error))
