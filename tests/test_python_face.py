"""The Python face is the commands: each is there, says its units and errors, and shows itself in a line."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import kernelcast as kc
import numpy as np
import pandas as pd
import pytest

ROOT = Path(kc.__file__).parent
GEMM = {"precision": "fp16", "m": 1024, "n": 2048, "k": 512}
COMMANDS = (
    "predict", "predict_runs", "predict_workload", "explain", "tiles", "crossover", "families", "platforms", "compare",
    "train", "adapt", "suggest", "models", "promote", "load_model",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_takes(name: str) -> None:
    assert name in kc.__all__
    text = inspect.getdoc(getattr(kc, name))
    assert text is not None and len(text) > 40
    if name != "platforms":  # which takes nothing, and fails at nothing
        assert "InputError" in text


def test_a_prediction_shows_itself(stored: Path) -> None:
    found = kc.predict("gemm", platform="t4", **GEMM)
    assert re.fullmatch(r"<Prediction gemm on t4: [\d.]+ .s \(90 % band [\d.]+ .s … [\d.]+ .s\)>", repr(found))
    html = found._repr_html_()
    assert html.startswith("<table>") and "kernelcast-t4@1" in html
    nasty = kc.predict("<b>", platform="t4", flops=1e9, bytes=1e8, precision="fp32")._repr_html_()
    assert "<b>" not in nasty and "&lt;b&gt; on t4" in nasty


def test_a_band_that_is_not_there_is_not_shown(home: Path, unshipped: None) -> None:
    assert repr(kc.predict("gemm", platform="t4", **GEMM)).endswith("(no band)>")


def test_notes_are_rows_and_their_words_are_the_note(stored: Path) -> None:
    found = kc.predict("gemm", platform="t4", **GEMM | {"k": 10_000_000}, implementation="somebody")
    document = json.loads(json.dumps(found.to_dict()))
    assert [set(row) for row in document["notes"]] == [{"code", "words", "factor"}] * len(document["notes"])
    assert "; ".join(row["words"] for row in document["notes"]) == document["note"] == found.note
    codes = [row["code"] for row in document["notes"]]
    assert codes[:2] == ["outside_range", "implementation_unknown"] and document["in_domain"] is False
    assert document["notes"][0]["factor"] > 1.0


def test_a_model_shows_itself(stored: Path) -> None:
    model = kc.load_model("t4")
    assert re.fullmatch(r"<Model kernelcast-t4@1 of t4: \d families, \d+ runs, held-out error [\d.]+ %>", repr(model))
    assert "<td>gemm</td>" in model._repr_html_()
    assert kc.load_model("t4", "kernelcast-t4@1").meta["rows"] == model.meta["rows"]
    assert kc.predict("gemm", platform="t4", model=model, **GEMM) == kc.predict("gemm", platform="t4", **GEMM)


def test_a_platform_without_a_model_says_so(home: Path, unshipped: None) -> None:
    with pytest.raises(kc.InputError, match="t4 has no model"):
        kc.load_model("t4")


def test_models_and_their_promotion(stored: Path) -> None:
    (line,) = kc.models("t4")
    assert line["champion"] and line["name"] == "kernelcast-t4" and line["fault"] is None
    with pytest.raises(kc.InputError, match="no model 'other'"):
        kc.promote("other", "t4")


def test_an_explanation_holds_the_prediction(stored: Path) -> None:
    found, said = kc.predict("gemm", platform="t4", **GEMM), kc.explain("gemm", platform="t4", **GEMM)
    assert found.to_dict().items() <= said.items()
    np.testing.assert_allclose(sum(said["shares"].values()), 1.0)
    np.testing.assert_allclose(said["hybrid_factor"], found.predicted_s / found.baseline_s)
    changed = kc.explain("gemm", platform="t4", overrides={"hbm_peak_bw": "640 GB/s"}, **GEMM)
    assert {row["name"] for row in changed["changed"]} >= {"hbm_peak_bw"}


def test_an_application_is_explained_and_compared(home: Path) -> None:
    said = kc.explain("lesson-intensity", platform="h200", analytic=True)
    assert said["segments"][0]["steps"] and said["predicted_s"] > 0.0
    asked = {"platforms": ["h200", "mi300x"], "sweep": {"kernel.bytes": (1e6, 8e10)}, "analytic": True}
    found = kc.crossover("lesson-intensity", **asked)
    assert found.kernel == "lesson-intensity" and found.candidates == ["h200", "mi300x"] and found.stretches
    with pytest.raises(kc.InputError, match="no parameter 'n'"):
        kc.crossover("lesson-intensity", **asked, n=5)


def test_tiles_are_ranked_and_other_families_refused(stored: Path) -> None:
    ranked = kc.tiles("gemm", platform="h200", precision="bf16", m=4096, n=4096, k=4096, tiles=[(128, 128, 64)],
                      analytic=True)
    assert ranked.tiles[0].tile[:3] == (128, 128, 64) and ranked.tiles[0].predicted_s > 0.0
    with pytest.raises(kc.InputError, match="matrix product"):
        kc.tiles("fft", platform="h200", n=64)


def test_a_crossover_lies_where_the_times_are_equal(home: Path) -> None:
    found = kc.crossover("vector_copy", platforms=["h200", "mi300x"], sweep={"n": (1e3, 1e9)}, analytic=True)
    (first, *_) = found.crossings
    times = [[kc.predict("vector_copy", platform=p, n=int(n), analytic=True).predicted_s for p in ("h200", "mi300x")]
             for n in (first["n"] / 2, first["n"] * 1.05)]
    assert (times[0][0] < times[0][1]) != (times[1][0] < times[1][1])
    lone = kc.crossover("gemm", platforms=["h200"], sweep={"m": (64, 8192)}, n=4096, k=4096, precision="bf16",
                        variant={"precision": "fp8"}, analytic=True)
    assert lone.candidates == ["h200", "h200 with precision=fp8"]
    with pytest.raises(kc.InputError, match="0 < LOW < HIGH"):
        kc.crossover("vector_copy", platforms=["h200", "mi300x"], sweep={"n": (10, 1)})


def test_suggested_runs_can_be_measured(stored: Path, small_runs: pd.DataFrame) -> None:
    pool = small_runs.drop(columns="time_s")
    found = kc.suggest("t4", 3, candidates=pool, families=["gemm"], source="parameters")
    assert len(found) == 3 and set(found["kernel"]) == {"gemm"} and (found["expected_s"] > 0).all()
    with pytest.raises(kc.InputError, match="DataFrame"):
        kc.suggest("t4", 3, candidates=[1, 2])  # type: ignore[arg-type]


def test_adapting_gives_a_model(small_runs: pd.DataFrame, home: Path, unshipped: None) -> None:
    few = small_runs[small_runs["kernel"] == "transpose"].head(12)
    model = kc.adapt(few, platform="t4", source="parameters", register=False)
    assert model.meta["rows"] == 12 and model.meta["heldout"]["n"] == 12
    assert not home.exists()


def test_the_examples_of_the_page_run(home: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(shown) >= 4
    names: dict[str, object] = {}
    for code in shown:
        exec(compile(code, "docs/python.md", "exec"), names)  # each builds on those before, as a reader would
    for name in COMMANDS:
        assert f"kc.{name}(" in page, name
