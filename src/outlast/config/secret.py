"""Where secrets come from: `{env: NAME}`, `{file: PATH}`, `${NAME}`, or (with a warning) the text.

Owns the spelling of a secret and the checks on its text. Does not read files or the environment:
both are handed in. No message quotes a secret, not even one that cannot be used.
"""

import re
from collections.abc import Callable, Mapping

from outlast.config.report import Report
from outlast.config.tree import Tree
from outlast.config.values import has_control

SECRET_BYTES_MAX = 16 * 1024
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

ReadFile = Callable[[str], bytes]
"""Bytes of a file named in the configuration. Raises OSError or ValueError."""


class Secret:
    """A secret's text; it shows in no `repr`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Secret(…)"


class Secrets:
    """Looks secrets up while a file is read."""

    def __init__(self, env: Mapping[str, str], read_file: ReadFile, report: Report) -> None:
        self._env = env
        self._read_file = read_file
        self._report = report

    def find(self, raw: Tree, path: str, *, literal_warns: bool = True) -> Secret | None:
        """The secret that a value stands for. None: there is none, and a problem was noted."""
        text = self._text(raw, path, literal_warns=literal_warns)
        if text is None:
            return None
        if not text:
            self._report.problem(path, "the secret is empty")
        elif has_control(text) or len(text) > SECRET_BYTES_MAX:
            self._report.problem(path, "the secret holds control characters or is too long")
        elif not text.isascii():
            self._report.problem(path, "the secret must be ASCII to travel in a header")
        else:
            return Secret(text)
        return None

    def _text(self, raw: Tree, path: str, *, literal_warns: bool) -> str | None:
        match raw:
            case {"env": str(name), **rest} if not rest and _NAME.match(name):
                return self._from_env(name, path)
            case {"file": str(name), **rest} if not rest and name:
                return self._from_file(name, path)
            case str():
                found = _REFERENCE.match(raw)
                if found:
                    return self._from_env(found[1], path)
                if literal_warns:
                    self._report.warn(
                        path, "the secret stands in the file; {env: NAME} keeps it out"
                    )
                return raw
            case _:
                self._report.problem(path, "must be a secret: {env: NAME}, {file: PATH} or ${NAME}")
                return None

    def _from_env(self, name: str, path: str) -> str | None:
        text = self._env.get(name)
        if not text:
            state = "empty" if text == "" else "not set"
            self._report.problem(path, f"the environment variable {name} is {state}; set it")
            return None
        return text.strip()

    def _from_file(self, name: str, path: str) -> str | None:
        try:
            return self._read_file(name).decode("utf-8").strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "not text"
            self._report.problem(path, f"the file of the secret cannot be read: {why.lower()}")
            return None
