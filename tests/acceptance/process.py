"""The installed command as a child process: how these tests meet the product."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any, TypeVar

import openai

T = TypeVar("T")

OUTLAST = Path(sys.executable).with_name("outlast")

START_LIMIT_S = 20.0
STOP_LIMIT_S = 10.0

_READY = re.compile(r"ready at (http://\S+:(\d+))")


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a child may know: no key, no configuration, nobody's home."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    return {**kept, "PATH": os.environ["PATH"], "HOME": str(home), **(more or {})}


def eventually(look: Callable[[], T | None], *, limit_s: float = 5.0) -> T:
    """The first thing that `look` returns which is not None or False."""
    pause = threading.Event()
    for _ in range(int(limit_s / 0.01)):
        found = look()
        if found is not None and found is not False:
            return found
        pause.wait(0.01)
    raise AssertionError(f"did not happen within {limit_s:g} s")


class Lines:
    """What a child writes to one pipe, as it comes."""

    def __init__(self, pipe: IO[str]) -> None:
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def __iter__(self):
        return iter(self.text.splitlines())

    @property
    def text(self) -> str:
        with self._changed:
            return "".join(self._lines)

    def wait_for(self, find: Callable[[str], T | None], *, limit_s: float) -> T | None:
        """What `find` makes of all that was written; None: the pipe ended, or time is up."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or find("".join(self._lines)) is not None, timeout=limit_s
            )
            return find("".join(self._lines))

    def join(self) -> None:
        self._thread.join(STOP_LIMIT_S)

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Gateway:
    """`outlast` with `arguments`, running in `home`, once it says that it is ready."""

    def __init__(
        self, arguments: Sequence[str], home: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [OUTLAST, *arguments],
            cwd=home,
            env=environment(home, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdout = Lines(self.process.stdout)
        self.stderr = Lines(self.process.stderr)
        ready = self.stdout.wait_for(_READY.search, limit_s=START_LIMIT_S)
        if ready is None:
            self.kill()
            raise AssertionError(f"not ready: {self.stdout.text}{self.stderr.text}")
        self.url = ready[1]
        self.port = int(ready[2])
        self._client: openai.OpenAI | None = None

    @property
    def client(self) -> openai.OpenAI:
        """The official SDK, without its own retries, so that each call is one request."""
        if self._client is None:
            self._client = openai.OpenAI(
                base_url=f"{self.url}/v1",
                api_key="sk-of-the-caller",
                max_retries=0,
                timeout=15.0,
                http_client=openai.DefaultHttpxClient(trust_env=False),
            )
        return self._client

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on its own connection: status, headers (lower case), body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=15.0)
        try:
            given = {"content-type": "application/json", **(headers or {})}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, fields, answer.read()
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        status, _, body = self.request("GET", "/stats")
        assert status == 200
        page: dict[str, Any] = json.loads(body)
        return page

    def health(self, deployment: str) -> dict[str, Any]:
        """The row of `/stats` of one deployment."""
        rows = {row["deployment"]: row for row in self.stats()["deployments"]}
        row: dict[str, Any] = rows[deployment]
        return row

    def signal(self, number: signal.Signals, *, limit_s: float = STOP_LIMIT_S) -> int:
        """Send a signal and wait for the end: the exit code."""
        self.process.send_signal(number)
        return self.wait(limit_s=limit_s)

    def wait(self, *, limit_s: float = STOP_LIMIT_S) -> int:
        code = self.process.wait(limit_s)
        self.stdout.join()
        self.stderr.join()
        return code

    def stop(self) -> None:
        """End it, and see that it ended well and had nothing to say but log lines."""
        if self._client is not None:
            self._client.close()
        try:
            running = self.process.poll() is None
            assert (self.signal(signal.SIGINT) if running else self.wait()) == 0
        finally:
            self.kill()
        assert "request_crashed" not in self.events()

    def events(self) -> list[str]:
        """The words of its log lines; anything else on stderr fails."""
        return [json.loads(line)["event"] for line in self.stderr]

    def kill(self) -> None:
        """Whatever happened, nothing of it is left."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


def finished(
    arguments: Sequence[str],
    home: Path,
    env: Mapping[str, str] | None = None,
    *,
    limit_s: float = START_LIMIT_S,
) -> subprocess.CompletedProcess[str]:
    """The installed command, run to its end."""
    return subprocess.run(
        [OUTLAST, *arguments],
        cwd=home,
        env=environment(home, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
