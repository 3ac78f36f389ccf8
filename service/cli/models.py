"""`kernelcast models`, `promote` and `ui`: what is remembered."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from ...analytic.errors import InputError
from .ask import AsJson
from .show import add_row, console, percent, print_json, table, text, warn

OnePlatform = Annotated[str | None, typer.Option("--platform", "-p", metavar="PLATFORM", help="Only this platform.")]


def models(platform: OnePlatform = None, as_json: AsJson = False) -> None:
    """List the stored models; a star marks the champion that predictions use."""
    from ..models import damaged, model_lines

    lines = model_lines(platform)
    for fault in damaged(lines):
        warn(fault)
    if as_json:
        print_json(lines)
        return
    if not lines:
        of = f" of {platform}" if platform else ""
        console().print(text(f"no models{of} yet; `kernelcast train --runs FILE` makes one, "
                             "`kernelcast platforms NAME` says what predicts until then"))
        return
    made = table(["", "platform", "model", "families", "rows", "mean error", "coverage", "trained", "size"],
                 ["families", "rows", "mean error", "coverage", "size"])
    for line in lines:
        add_row(made, _cells(line))
    console().print(made)


def _cells(line: dict[str, Any]) -> list[object]:
    start = ["*" if line["champion"] else "", line["platform"], f"{line['name']}@{line['version']}"]
    if line["fault"]:
        return [*start, "damaged", "-", "-", "-", "-", "-"]
    held = line["heldout"] or {}
    coverage = held.get("coverage")
    return [*start, len(line["families"]), line["rows"], percent(held.get("mape")),
            percent(None if coverage is None else 100.0 * coverage), (line["trained"] or "-")[:16],
            f"{line['bytes'] / 1e6:.2g} MB"]


def promote(
    name: Annotated[str, typer.Argument(metavar="NAME", help="NAME (newest version) or NAME@VERSION.")],
    platform: OnePlatform = None,
) -> None:
    """Make a stored model the champion of its platform."""
    from ...registry.publish import promote as move

    entry = move(name, [platform] if platform else [])
    console().print(text(f"{entry.label} is the champion of {entry.platform} now"))


def ui(port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on 127.0.0.1.")] = 5000) -> None:
    """Open MLflow's pages on the store (on this machine only); Ctrl-C ends it."""
    from ...registry import tracking

    uri = tracking.tracking_uri()
    if uri.startswith(("http://", "https://")):
        raise InputError(f"{tracking.URI_VARIABLE} is a server: open {uri} in a browser")
    tracking.check_store()
    _check_free(port)
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", uri, "--host", "127.0.0.1", "--port",
               str(port)]
    for key, value in tracking.SETTINGS.items():
        os.environ.setdefault(key, value)
    sys.stdout.flush()
    os.execv(sys.executable, command)


def _check_free(port: int) -> None:
    """InputError where another program listens on the port: the server would say so among much else, and end with 0."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as fault:
            raise InputError(f"port {port} on 127.0.0.1 cannot be used ({fault.strerror}); choose another with --port N"
                             ) from None
