"""What a learned correction is made of, and what whoever asks could change, each change asked like the question itself.

Two answers rest on runs of their own, so a change is only called faster or slower where the gain is beyond what both
bands leave open; that errs on the safe side, as errors of neighbouring questions mostly go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import KernelcastError
from ..analytic.platform import Platform
from ..analytic.units import format_quantity
from ..training.hybrid.notes import joined
from .answer import ANALYTIC, Answered, Prediction, answer
from .changes import Change, changes, described_together
from .plain import plain_question, sizes_to_pad, usual_question
from .question import Question

if TYPE_CHECKING:
    from ..training.hybrid.attribution import Attribution, Learned
    from ..training.hybrid.model import Model

LEAST_GAIN = 0.01
WORTH_SAYING = 0.02
"""Longer than at plain sizes by this share: said in words."""
MAIN_SHARE = 0.2
"""Causes that make up so much of a difference are named."""
TILES = 3
"""How many of the best tiles are told."""
FASTER, SLOWER, WITHIN, UNBOUNDED = "faster", "slower", "within the band", "no band"
NOTHING = "nothing learned: calibrated analytic"
FADED = "outside the training range"
"""Word for what fading towards the analytic time takes from a correction."""
ANALYTIC_TERMS = "the analytic terms"


@dataclass(frozen=True)
class WhatIf:
    """One change and its answer; times in seconds, an unbounded side is None.

    gain: time now ÷ time then. verdict: faster or slower where that is beyond both bands and 1 %, else `within the
    band`, or `no band`.
    """

    kind: str
    change: str
    params: dict[str, Any]
    precision: str
    implementation: str
    predicted_s: float
    lower_s: float | None
    upper_s: float | None
    gain: float
    verdict: str
    in_domain: bool
    note: str
    caution: str
    """What the change costs whoever makes it, beside time."""
    calibrated_s: float


def advice(asked: Answered) -> dict[str, Any]:
    """`learned`: factor and parts of the correction; `whatif`: changes, fastest first; `said`: the gist, in sentences.

    JSON-safe. `learned` is None for an analytic prediction.
    """
    question, platform, prediction, found = asked.question, asked.platform, asked.prediction, asked.model
    analytic = prediction.model == ANALYTIC
    options = {"level": prediction.level, "model": found, "analytic": analytic, "overridden": asked.overridden}
    plain = plain_question(question) if question.known else None
    candidates = changes(question, platform, None if analytic else found)
    beside = [] if plain is None else [Change("plain", _sizes_words(question, plain), plain)]
    answered = _answered([*beside, *candidates], prediction, platform, options)
    at_plain = next((item for item in answered if item.kind == "plain"), None)
    whatif = [item for item in answered if item.kind != "plain"] + _tiles(asked)
    learned, own = None, None
    if not analytic and found is not None:
        learned, own = _learned(asked, found, plain if at_plain is not None else None)
    said = _said(prediction, at_plain, own, whatif)
    if learned is not None and at_plain is not None:
        learned["beside"] = {
            "params": {name: at_plain.params[name] for name in _moved(question, at_plain.params)},
            "predicted_s": at_plain.predicted_s, "ratio": prediction.predicted_s / at_plain.predicted_s,
            "analytic_ratio": prediction.calibrated_s / at_plain.calibrated_s,
            "parts": [] if own is None else _parts(own),
        }
    return {"learned": learned, "whatif": [asdict(item) for item in sorted(whatif, key=_order)], "said": said}


def _order(item: WhatIf) -> tuple[int, float]:
    return (FASTER, WITHIN, UNBOUNDED, SLOWER).index(item.verdict), item.predicted_s


def _verdict(now: Prediction, time_s: float, lower_s: float | None, upper_s: float | None) -> str:
    """Whether another answer is faster or slower than `now` beyond what the two bands leave open."""
    if now.lower_s is None or now.upper_s is None or lower_s is None or upper_s is None or now.lower_s <= 0.0:
        return UNBOUNDED
    gain = math.log(now.predicted_s / time_s)
    if gain >= 0.0:
        open_to = math.hypot(math.log(now.predicted_s / now.lower_s), math.log(upper_s / time_s))
    else:
        open_to = math.hypot(math.log(now.upper_s / now.predicted_s), math.log(time_s / lower_s))
    if abs(gain) < max(math.log1p(LEAST_GAIN), open_to):
        return WITHIN
    return FASTER if gain > 0.0 else SLOWER


def _answered(asked: Sequence[Change], now: Prediction, platform: Platform, options: Mapping[str, Any]
              ) -> list[WhatIf]:
    """All changes answered in one call; those without a time are left out."""
    if not asked:
        return []
    given = answer(described_together([one.question for one in asked], platform), platform, **options)
    predicted = given.predicted
    out = []
    for i in np.flatnonzero(np.isfinite(predicted.predicted_s)).tolist():
        one, time_s = asked[i], float(predicted.predicted_s[i])
        bounded = bool(np.isfinite(predicted.upper_s[i]))
        lower = float(predicted.lower_s[i]) if bounded else None
        upper = float(predicted.upper_s[i]) if bounded else None
        out.append(WhatIf(one.kind, one.words, dict(one.question.params), one.question.precision,
                          str(predicted.implementation[i]), time_s, lower, upper, now.predicted_s / time_s,
                          _verdict(now, time_s, lower, upper), bool(predicted.in_domain[i]),
                          joined(predicted.notes.of(i)), one.caution, float(predicted.calibrated_s[i])))
    return [item for item in out if not (item.kind == "implementation" and item.implementation == now.implementation)]


def _tiles(asked: Answered) -> list[WhatIf]:
    """The best tiles of a matrix product by `service.tiles`; the analytic time takes the first already."""
    from .tiles import FAMILIES, ranked_tiles

    now = asked.prediction
    if now.kernel not in FAMILIES:
        return []
    ranked = ranked_tiles(asked)
    out = []
    for item in ranked.tiles[:TILES]:
        if item.predicted_s is None:
            continue
        m, n, k, split = item.tile
        words = f"tile {m}x{n}x{k}" + (f", k in {split} parts" if split > 1 else "")
        verdict = _verdict(now, item.predicted_s, item.lower_s, item.upper_s)
        out.append(WhatIf("tile", words, dict(now.params), now.precision, now.implementation, item.predicted_s,
                          item.lower_s, item.upper_s, now.predicted_s / item.predicted_s, verdict, now.in_domain,
                          ranked.note, "", item.predicted_s * now.calibrated_s / now.predicted_s))
    return out


def _learned(asked: Answered, model: Model, plain: Question | None) -> tuple[dict[str, Any], Attribution | None]:
    """(factor and parts of the correction beside a usual question, what of it the sizes make beside plain ones)."""
    from ..training.hybrid.attribution import Attribution, Cause, attribute, learned_of

    question, platform, prediction = asked.question, asked.platform, asked.prediction
    factor = prediction.predicted_s / prediction.calibrated_s
    out: dict[str, Any] = {"factor": factor, "reference": None, "parts": [], "words": NOTHING}
    row = learned_of(model, asked.described.groups[0])
    if row is None:
        if prediction.predicted_s != prediction.calibrated_s:
            out["words"] = "learned from the counts of other families: no parts"
        return out, None
    if getattr(row.model, "residual", None) is None and math.isclose(factor, 1.0):
        return out, None
    start = row.part if plain is None else row.taken(plain.described(platform)[0].groups[0])
    own = None if plain is None else attribute(row.model, row.part, start)
    usual = _described_usual(question, platform, row)
    whole = own
    if usual is not None:
        first = attribute(row.model, start, usual[1])
        whole = first if own is None else own.after(first)
    if whole is None:
        return out | {"words": "no plain question to set it beside"}, None
    faded = math.log(factor) - whole.total_log
    if abs(faded) > 1e-4:
        whole = Attribution(math.log(factor), whole.reference_log, (*whole.causes, Cause(FADED, faded, ())))
    named = usual[0] if usual is not None else plain
    assert named is not None
    whose = usual[1] if usual is not None else row.part
    reference = {"params": named.params, "precision": named.precision, "cache": named.cache,
                 "implementation": str(whose.rows.categories["implementation"][0]),
                 "factor": math.exp(whole.reference_log)}
    return out | {"reference": reference, "parts": _parts(whole), "words": ""}, own


def _described_usual(question: Question, platform: Platform, row: Learned) -> tuple[Question, Any] | None:
    """A usual question and its row; in the precision asked for where the platform has not the usual one."""
    usual = usual_question(question, row.model)
    if usual is None:
        return None
    for one in (usual, replace(usual, precision=question.precision)):
        try:
            return one, row.taken(one.described(platform)[0].groups[0])
        except KernelcastError:
            continue
    return None


def _parts(found: Attribution) -> list[dict[str, Any]]:
    return [{"word": cause.word, "factor": math.exp(cause.log), "columns": list(cause.columns)}
            for cause in sorted(found.causes, key=lambda cause: -abs(cause.log))]


def _moved(question: Question, params: Mapping[str, Any]) -> list[str]:
    return [name for name in sizes_to_pad(question) if params[name] != question.params[name]]


def _sizes_words(question: Question, other: Question) -> str:
    return " ".join(f"{name}={other.params[name]}" for name in _moved(question, other.params))


def _said(now: Prediction, plain: WhatIf | None, own: Attribution | None, whatif: Sequence[WhatIf]) -> list[str]:
    """How much longer it takes than at plain sizes and why; what the best padding gives."""
    out = []
    if plain is not None and now.predicted_s / plain.predicted_s >= 1.0 + WORTH_SAYING:
        ratio = now.predicted_s / plain.predicted_s
        out.append(f"{ratio:.3g} times as long as at {plain.change} ({format_quantity(plain.predicted_s, 's')})"
                   f"{_because(math.log(ratio), now.calibrated_s / plain.calibrated_s, own)}")
    padded = [item for item in whatif if item.kind == "size" and item.gain >= 1.0 + LEAST_GAIN]
    if padded:
        best = min(padded, key=lambda item: item.predicted_s)
        band = ("" if best.lower_s is None or best.upper_s is None else
                f" ({format_quantity(best.lower_s, 's')} … {format_quantity(best.upper_s, 's')})")
        sure = "" if best.verdict == FASTER else f", {best.verdict}"
        out.append(f"{best.change}: {format_quantity(best.predicted_s, 's')}{band}, {best.gain:.3g} times faster{sure}")
    return out


def _because(log_ratio: float, analytic_ratio: float, own: Attribution | None) -> str:
    """`, because of alignment (x 8.34)`: the causes that make up most of a difference."""
    logs = {ANALYTIC_TERMS: math.log(analytic_ratio)} | {c.word: c.log for c in (own.causes if own is not None else ())}
    main = sorted((item for item in logs.items() if item[1] >= MAIN_SHARE * log_ratio), key=lambda item: -item[1])
    words = ", ".join(f"{word} (x {math.exp(log):.3g})" for word, log in main)
    return f", because of {words}" if words else ""
