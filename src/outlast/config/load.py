"""A configuration from the outside world: which file, or which variables, or the simulated one.

The only module that reads files and is given the environment. Owns the order in which sources are
tried and the settings of the process (listener, telemetry). Everything that is wrong comes out as
one `ConfigError`.

Surprising cases: a file that is named must exist; `./outlast.yaml` need not. The environment never
adds a provider beside a file's. A listener beyond loopback is refused while it is open to all.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import structs

from outlast.config.build import Built, build
from outlast.config.document import read_document
from outlast.config.environment import (
    OPENAI,
    openai_topology,
    simulated_topology,
    warn_of_unused,
    with_discovered,
)
from outlast.config.layers import ENVIRONMENT, FILE, Layered, built_in, request_policy
from outlast.config.loaded import Loaded, Provenance, ServerSettings, TelemetrySettings
from outlast.config.origins import is_loopback, read_listen
from outlast.config.reading import Reader
from outlast.config.report import Report
from outlast.config.secret import SECRET_BYTES_MAX, Secret, Secrets
from outlast.config.table import FILE_SECTION
from outlast.config.tree import FILE_BYTES_MAX, read_tree

__all__ = [
    "Loaded",
    "ServerSettings",
    "TelemetrySettings",
    "load",
    "parse_config",
    "with_discovered",
]

DEFAULT_FILE = Path("outlast.yaml")
CONFIG_VARIABLE = "OUTLAST_CONFIG"
LISTEN_VARIABLE = "OUTLAST_LISTEN"
DEBUG_VARIABLE = "DEBUG_LOG"
_DEBUG_WORDS = {"true": True, "1": True, "false": False, "0": False}


def load(path: Path | None, env: Mapping[str, str], *, insecure: bool = False) -> Loaded:
    """The configuration that applies. `insecure` allows an open listener beyond loopback.

    Raises:
        ConfigError: it cannot be used; with every problem found.
    """
    source = _source(path, env)
    if source is None:
        return _without_file(env, insecure=insecure)
    report = Report()
    return parse_config(
        _read(source, report), env, folder=source.parent, insecure=insecure, report=report
    )


def _source(path: Path | None, env: Mapping[str, str]) -> Path | None:
    if path is not None:
        return path
    if env.get(CONFIG_VARIABLE):
        return Path(env[CONFIG_VARIABLE])
    # A link whose target is gone is somebody's configuration: it is read, and said to be missing.
    return DEFAULT_FILE if DEFAULT_FILE.exists() or DEFAULT_FILE.is_symlink() else None


def _read(path: Path, report: Report) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        report.problem("", f"cannot read {str(path)!a}: {reason or 'no such path'}")
        report.check()
        return b""


def parse_config(
    data: bytes,
    env: Mapping[str, str],
    *,
    folder: Path,
    insecure: bool = False,
    report: Report | None = None,
) -> Loaded:
    """The configuration that a file's bytes say. Secrets in files are relative to `folder`.

    Raises:
        ConfigError: it cannot be used; with every problem found.
    """
    report = report or Report()

    def read_file(name: str) -> bytes:
        with (folder / name).open("rb") as file:
            return file.read(SECRET_BYTES_MAX + 1)

    reader = Reader(report, Secrets(env, read_file, report))
    document = read_document(read_tree(data, report), reader)
    process = _with_environment(
        built_in(FILE_SECTION.keys.values()).over(document.file, FILE), env, report
    )
    server = _server(process, report, insecure=insecure)
    built = build(document, report)
    return _loaded(built, process, server, report, "file")


def _without_file(env: Mapping[str, str], *, insecure: bool) -> Loaded:
    report = Report()
    process = _with_environment(built_in(FILE_SECTION.keys.values()), env, report)
    server = _server(process, report, insecure=insecure)
    policy = request_policy(process)
    warn_of_unused(env, report)
    secrets = Secrets(env, _no_file, report)
    secret: Secret | None = None
    if env.get("OPENAI_API_KEY"):
        secret = secrets.find({"env": "OPENAI_API_KEY"}, "OPENAI_API_KEY")
    report.check()
    simulated = secret is None
    topology = (
        simulated_topology(policy) if secret is None else openai_topology(secret.text, policy)
    )
    built = Built(topology, Provenance(process, {}, {}, {}, {}))
    return _loaded(built, process, server, report, "simulated" if simulated else "environment")


def _no_file(name: str) -> bytes:
    raise FileNotFoundError(name)


def _loaded(
    built: Built,
    process: Layered,
    server: ServerSettings | None,
    report: Report,
    origin: Literal["file", "environment", "simulated"],
) -> Loaded:
    assert server is not None, "a listener that cannot be read was reported"
    return Loaded(
        topology=built.topology,
        server=server,
        telemetry=_telemetry(process),
        provenance=structs.replace(built.provenance, file=process),
        warnings=report.warnings,
        aliases=report.aliases,
        origin=origin,
        discover=(OPENAI,) if origin == "environment" else (),
    )


def _with_environment(process: Layered, env: Mapping[str, str], report: Report) -> Layered:
    flat: dict[str, object] = {}
    if env.get(LISTEN_VARIABLE):
        flat["server.listen"] = env[LISTEN_VARIABLE]
    if env.get(DEBUG_VARIABLE):
        debug = _DEBUG_WORDS.get(env[DEBUG_VARIABLE].lower())
        if debug is None:
            report.problem(DEBUG_VARIABLE, "must be true or false (or 1 or 0)")
        flat["telemetry.debug_log"] = bool(debug)
    return process.over(flat, ENVIRONMENT)


def _server(process: Layered, report: Report, *, insecure: bool) -> ServerSettings | None:
    from_env = process.layer("server.listen") == ENVIRONMENT
    path = LISTEN_VARIABLE if from_env else "server.listen"
    try:
        host, port = read_listen(process.word("server.listen"))
    except ValueError as error:
        report.problem(path, str(error))
        return None
    if not is_loopback(host):
        danger = "anybody who reaches this address can spend your keys"
        if insecure:
            report.warn(path, f"open beyond loopback: {danger}")
        else:
            report.problem(
                path, f"{danger}; listen on 127.0.0.1, or start with --insecure if that is meant"
            )
    return ServerSettings(
        host=host,
        port=port,
        auth=process.word("server.auth"),
        request_body_bytes_max=process.count("server.request_body_max"),
        drain_timeout_s=process.number("server.drain_timeout"),
    )


def _telemetry(process: Layered) -> TelemetrySettings:
    token = process.value("telemetry.metrics_token")
    return TelemetrySettings(
        metrics=process.flag("telemetry.metrics"),
        metrics_token=token.text if isinstance(token, Secret) else None,
        log_format=process.word("telemetry.log_format"),
        debug_log=process.flag("telemetry.debug_log"),
    )
