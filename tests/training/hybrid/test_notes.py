"""What is said of predictions: typed rows, joined for display, and the domain that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from kernelcast.features.describe import describe
from kernelcast.training.hybrid.notes import Note, Notes, Remark, joined

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model


def rows(*flags: int) -> np.ndarray:
    return np.array(flags, dtype=bool)


def test_notes_are_read_in_the_order_they_were_said_in() -> None:
    notes = Notes(3)
    notes.say("a", rows(1, 1, 0), "first")
    notes.say("b", rows(0, 1, 1), lambda i: [f"row {k}" for k in i], factor=np.array([1.0, 2.0, 3.0]), outside=True)
    notes.say("c", rows(1, 0, 0), "before all", first=True)
    assert notes.joined().tolist() == ["before all; first", "first; row 1", "row 2"]
    assert notes.of(1) == (Note("a", "first"), Note("b", "row 1", 2.0, True))
    assert notes.outside.tolist() == [False, True, True]


def test_rows_of_a_group_find_their_place_in_the_table() -> None:
    notes = Notes(4)
    notes.add(np.array([3, 1]), [Remark("x", rows(1, 0), "three"), Remark("y", rows(0, 1), "one", outside=True)])
    assert notes.joined().tolist() == ["", "one", "", "three"]
    assert notes.silent.tolist() == [True, False, True, False]
    assert notes.outside.tolist() == [False, True, False, False]


def test_a_reason_takes_the_place_of_what_was_said() -> None:
    notes = Notes(2)
    notes.say("a", rows(1, 1), "a guess")
    notes.replace("refused", rows(0, 1), lambda i: ["no such parameter"])
    assert notes.joined().tolist() == ["a guess", "no such parameter"]
    assert notes.of(1) == (Note("refused", "no such parameter", 1.0, True),)


def test_the_words_of_one_note_may_be_empty() -> None:
    assert joined([Note("a", ""), "b", Note("c", "d")]) == "b; d"
    assert Remark("a", rows(1, 0), "", 3.0).widening.tolist() == [3.0, 1.0]


def test_factors_are_what_the_band_was_widened_by(small_model: Model) -> None:
    def predicted(k: int, implementation: str = "cublas") -> tuple[float, tuple[Note, ...], bool]:
        frame = pd.DataFrame({"platform": ["t4"], "kernel": ["gemm"], "precision": ["fp16"], "cache": ["warm"],
                              "params": [f'{{"m":1024,"n":1024,"k":{k}}}'], "implementation": [implementation]})
        found = small_model.predict(describe(frame))
        half = float(np.log(found.upper_s[0] / found.predicted_s[0])) / float(found.sigma[0])
        return half, found.notes.of(0), bool(found.in_domain[0])

    inside, none, sure = predicted(1024)
    assert none == () and sure
    outside, (note,), known = predicted(1_000_000)
    assert note.code == "outside_range" and note.outside and not known
    assert f"band widened x{note.factor:.3g}" in note.words
    np.testing.assert_allclose(outside / inside, note.factor, rtol=1e-9)
    _, (stranger,), known = predicted(1024, "somebody's")
    assert stranger.code == "implementation_unknown" and not known
    assert '"somebody\'s"' in stranger.words
