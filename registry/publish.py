"""A trained model made public: stored, tracked, judged against the champion, and promoted where it is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError, nearest_names
from ..analytic.platform import load_platform
from . import index, tracking
from .heldout import duel
from .home import check_writable, models_folder

if TYPE_CHECKING:
    from ..training.hybrid.compare import Comparison
    from ..training.hybrid.model import Model


@dataclass(frozen=True)
class Trained:
    """A freshly trained model and what became of it."""

    model: Model
    comparison: Comparison | None
    champion: bool
    verdict: str
    """Whether it is the champion now, and why, in words."""
    logged: tracking.Logged | None = None


def check_store() -> None:
    """InputError for a store that cannot be written: before an hour of training rather than after it."""
    check_writable(models_folder())
    tracking.check_store()


def judge(model: Model, comparison: Comparison | None) -> tuple[bool, str]:
    """(becomes champion, why): where there is none always, else only if a paired test on held-out rows says so."""
    try:
        rival = index.open_champion(model.platform)
    except InputError as fault:  # the message tells people to train anew: this is how that mends it
        return True, f"the one before cannot be used: {fault}"
    if rival is None:
        return True, f"first model of {model.platform}"
    against = index.label(rival)
    found = None if comparison is None else duel(comparison.rows, rival)
    if found is None:
        return False, f"not tested: no held-out rows in common with {against}; `kernelcast promote` decides by hand"
    return found.verdict.better, f"{found.verdict.words}, against {against}"


def publish(model: Model, comparison: Comparison | None, judged: tuple[bool, str] | None = None) -> Trained:
    """Store, track and, where it is better, promote; whatever fails leaves neither folder nor pointer behind.

    judged: (becomes champion, why) where the caller has decided that by other means than held-out groups.
    """
    champion, why = judged or judge(model, comparison)
    entry = index.add_model(model)
    records = [] if comparison is None else comparison.records
    logged: tracking.Logged | None = None
    before = index.pointer_bytes(model.platform)
    try:
        logged = tracking.log_training(
            model.platform,
            model.name,
            entry.version,
            entry.folder,
            params=_params(model),
            metrics=tracking.metric_items(records) | _sizes(model),
            tags=_tags(model, entry.version),
        )
        if champion:
            index.point_champion(entry)
            tracking.give_alias(logged)
    except BaseException:  # Ctrl-C included: half a registration is worse than none
        index.restore_pointer(model.platform, before)
        index.drop_model(entry)
        if logged is not None:
            tracking.take_back(logged)
        raise
    verdict = f"champion of {model.platform}: {why}" if champion else f"not the champion of {model.platform}: {why}"
    return Trained(model, comparison, champion, verdict, logged)


def _params(model: Model) -> dict[str, Any]:
    keys = ("rows", "refused", "seed", "folds", "runs_digest", "runs")
    return {key: value for key, value in model.meta.items() if key in keys} | {
        "platform": model.platform,
        "families": len(model.families),
    }


def _sizes(model: Model) -> dict[str, float]:
    return {f"{name}.training_rows": float(family.rows) for name, family in model.families.items()} | {
        "all.training_rows": float(model.meta["rows"])
    }


def _tags(model: Model, version: str) -> dict[str, str]:
    meta = model.meta
    return {
        "kernelcast.platform": model.platform,
        "kernelcast.model": f"{model.name}@{version}",
        "kernelcast.runs_digest": str(meta["runs_digest"]),
        "kernelcast.runs": str(meta["runs"] or "table"),
        "kernelcast.rows": str(meta["rows"]),
        "kernelcast.version": str(meta["kernelcast"]),
    }


def promote(name: str, platforms: Sequence[str] = ()) -> index.Entry:
    """Make NAME or NAME@VERSION the champion of its platform. InputError where no or several platforms fit."""
    ids = [load_platform(p).id for p in platforms]
    wanted, _, version = name.partition("@")
    known = [e for e in index.entries() if not ids or e.platform in ids]
    fitting = [e for e in known if e.name == wanted and (not version or e.version == version)]
    found = sorted({e.platform for e in fitting})
    if not found:
        labels = {e.label for e in known} | {e.name for e in known}
        raise InputError(f"no model {name!r}{nearest_names(name, labels) if labels else '; there is none yet'}")
    if len(found) > 1:
        raise InputError(f"{name} is a model of {', '.join(found)}; say which with -p PLATFORM")
    entry = index.find_entry(found[0], name)
    before = index.pointer_bytes(entry.platform)
    index.point_champion(entry)
    try:
        tracking.move_alias(entry.name, entry.platform, entry.version)
    except BaseException:  # champion here and not there would be half a promotion
        index.restore_pointer(entry.platform, before)
        raise
    return entry
