"""The command line: one table of commands, and one place where every failure becomes a message and an exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from ...analytic.errors import KernelcastError
from . import (
    adapt,
    calibrate,
    crossover,
    demo,
    explain,
    families,
    measure,
    models,
    platforms,
    predict,
    tiles,
    train,
    workload,
)
from .show import clean_lines

DEBUG_VARIABLE = "KERNELCAST_DEBUG"
OUR_FAULT, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="kernelcast",
    help="How long a GPU kernel will take, with a band. Try: kernelcast predict gemm m=8192 n=8192 k=8192 -p h200",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: tuple[Callable[..., None], ...] = (
    demo.demo,
    platforms.platforms,
    families.families,
    predict.predict,
    explain.explain,
    tiles.tiles,
    crossover.crossover,
    workload.workloads,
    train.train,
    train.compare,
    adapt.adapt,
    adapt.suggest,
    measure.measure,
    calibrate.calibrate,
    models.models,
    models.promote,
    models.ui,
)
for command in COMMANDS:
    app.command()(command)


def _version(value: bool) -> None:
    if value:
        from ... import __version__

        typer.echo(f"kernelcast {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """How long a GPU kernel will take, with an uncertainty band that keeps its promise."""


def _say(message: str) -> None:
    with suppress(OSError):  # nobody may be listening
        sys.stderr.write(f"kernelcast: {clean_lines(message)}\n")


@cache
def _command() -> Any:
    """The commands as their library runs them; made of every signature, so made once in a process."""
    return typer.main.get_command(app)


def status_of(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; every failure is said on standard error, without a traceback."""
    try:
        # not app(…): its own handling of interrupts and closed pipes says nothing of what happened
        command = _command()
        words = sys.argv[1:] if arguments is None else list(arguments)
        with command.make_context("kernelcast", words) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except KernelcastError as fault:
        _debug()
        _say(str(fault))
        return fault.exit_status
    except BrokenPipeError:
        # the reader has gone (head, a closed pager): point stdout at nothing, so that the exit says nothing either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except Exception as fault:
        return _other(fault)


def _other(fault: Exception) -> int:
    """Usage errors of the command-line library (its classes move between versions), else a fault of ours."""
    if type(fault).__name__ == "Abort":
        _say("interrupted")
        return INTERRUPTED
    code, words = getattr(fault, "exit_code", None), getattr(fault, "format_message", None)
    if isinstance(code, int) and callable(words):
        return _usage(fault, words())
    if isinstance(code, int):
        return code
    _debug()
    line = str(fault).strip().splitlines()
    _say(f"internal error: {type(fault).__name__}: {line[0][:300] if line else ''} "
         f"(set {DEBUG_VARIABLE}=1 for the traceback)")
    return OUR_FAULT


def _usage(fault: Any, message: str) -> int:
    context = getattr(fault, "ctx", None)
    if type(fault).__name__ == "NoArgsIsHelpError" and context is not None:  # the help is the message
        typer.echo(context.get_help(), err=True)
        return USAGE
    command = getattr(context, "command_path", "kernelcast") if context is not None else "kernelcast"
    _say(f"{message} (see `{command} --help`)")
    return USAGE


def _debug() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()


def run() -> NoReturn:
    """Entry point of the `kernelcast` command."""
    sys.exit(status_of())
