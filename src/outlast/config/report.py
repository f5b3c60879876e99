"""What a reading of a configuration found: problems, warnings and aliases, all of them.

Owns their order (as found) and the spelling of paths: a problem with a key that was written under
an alias names the alias.
"""

from outlast.errors import ConfigError, ConfigProblem

SHOWN_MAX = 60


class Report:
    """Collects while a configuration is read; one per reading."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []
        self.warnings: list[str] = []
        self.aliases: list[str] = []
        self._spelled: dict[str, str] = {}

    def problem(self, path: str, message: str) -> None:
        """Note something that makes the configuration unusable."""
        self.problems.append(ConfigProblem(self.written(path), message))

    def warn(self, path: str, message: str) -> None:
        """Note something that works but is likely not meant."""
        self.warnings.append(f"{self.written(path)}: {message}")

    def alias(self, written: str, canonical: str) -> None:
        """Note that a key was written under another spelling."""
        self._spelled[canonical] = written
        self.aliases.append(f"{written}: read as {canonical}")

    def written(self, canonical: str) -> str:
        """The path under which a key stands in the file."""
        return self._spelled.get(canonical, canonical)

    def check(self) -> None:
        """End the reading if it found problems.

        Raises:
            ConfigError: with all of them.
        """
        if self.problems:
            raise ConfigError(self.problems)


def shown(value: object) -> str:
    """A value as a message quotes it: short, on one line. Never call it with a secret."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case list() | dict():
            return "a list" if isinstance(value, list) else "a mapping"
        case _:
            text = ascii(value)
            return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


def join(path: str, name: str) -> str:
    """The path of `name` inside `path`. A name with other than word characters is quoted."""
    plain = name.replace("_", "").replace("-", "").isalnum() and name.isascii()
    label = name if plain else ascii(name)
    return f"{path}.{label}" if path else label
