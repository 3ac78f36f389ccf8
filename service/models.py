"""What is remembered: stored models, what is damaged of them, and the one that a platform uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError
from ..analytic.platform import load_platform
from ..registry import index, publish
from .answer import resolve_model

if TYPE_CHECKING:
    from ..training.hybrid.model import Model


def models(platform: str | None = None) -> list[dict[str, Any]]:
    """Every stored model (of one platform), one dictionary each; `champion` marks the one that predictions use.

    `bytes` is its size, `heldout` its scores on held-out rows [%], `fault` what is damaged. Raises InputError for an
    unknown platform.
    """
    return model_lines(platform)


def load_model(platform: str, name: str | None = None) -> Model:
    """A stored model, to look at or to hand to `predict(model=…)`.

    name: NAME, NAME@VERSION or a folder; where left out the one that predictions of the platform use. It is kept open
    and shared: change nothing in it but `meta`. Raises InputError for an unknown platform, a damaged model, or where
    there is none.
    """
    found = resolve_model(load_platform(platform), name)
    if found is None:
        raise InputError(f"{platform} has no model; train one (`kernelcast.train`), or adapt one with a few runs")
    return found


def promote(name: str, platform: str | None = None) -> str:
    """Make a stored model, NAME (newest version) or NAME@VERSION, the champion of its platform; its `name@version`.

    Raises InputError where no model, or models of several platforms, have that name, and for a damaged one.
    """
    return publish.promote(name, [platform] if platform else []).label


def model_lines(platform: str | None = None) -> list[dict[str, Any]]:
    """Every stored model, the champion of each platform marked."""
    wanted = load_platform(platform).id if platform else None
    return [index.summary(entry) for entry in index.entries(wanted)]


def damaged(lines: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the stored models and with the files that name a champion, one message each."""
    faults = [line.get("fault") or index.pointer_fault(line["platform"] if "platform" in line else line["id"])
              for line in lines]
    return list(dict.fromkeys(str(fault) for fault in faults if fault))
