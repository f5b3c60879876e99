"""How an expected error looks on a terminal, and which exit code it means."""

import sys

from outlast.errors import ConfigError, GatewayError, StartError

EXIT_CONFIG = 2
EXIT_OTHER = 1


def report(error: ConfigError | GatewayError | StartError) -> int:
    """Print an error to stderr; returns the exit code."""
    if isinstance(error, ConfigError):
        number = len(error.problems)
        noun = "problem" if number == 1 else "problems"
        print(f"The configuration cannot be used ({number} {noun}):", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)
        return EXIT_CONFIG
    message = error.message if isinstance(error, GatewayError) else str(error)
    print(f"outlast: {message}", file=sys.stderr)
    return EXIT_OTHER
