"""What `explain` says of the learned part and of what can be changed, with the shipped H200 champion."""

from __future__ import annotations

import copy
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kernelcast.analytic.families import FAMILIES
from kernelcast.analytic.platform import load_platform
from kernelcast.registry.index import SHIPPED, shipped_folder
from kernelcast.registry.store import read_model
from kernelcast.service import plain
from kernelcast.service.advice import FASTER, NOTHING, SLOWER, UNBOUNDED, WITHIN, _verdict, advice
from kernelcast.service.answer import Prediction, answered, predict
from kernelcast.service.changes import changes
from kernelcast.service.cli.advice import print_advice
from kernelcast.service.explain import explanation
from kernelcast.service.plain import plain_question, sizes_to_pad
from kernelcast.service.question import ask

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

GEMM: dict[str, Any] = {"m": 4096, "n": 4097, "k": 4096, "precision": "bf16"}
MATRIX: dict[str, Any] = {
    "rows": 10**6, "cols": 10**6, "nnz": 10**7, "row_max": 5000, "row_std": 50.0, "row_min": 1, "row_q1": 2,
    "row_median": 4, "row_q3": 6, "mean_col_distance": 3e5, "structure": "powerlaw",
}
GRAPH: dict[str, Any] = {"nodes": 10**6, "edges": 10**7, "levels": 8, "max_degree": 50_000, "std_degree": 100.0,
                         "structure": "rmat"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "gemm": GEMM, "spmv_csr": MATRIX, "bfs": GRAPH, "softmax": {"rows": 4096, "cols": 4099, "cache": "cold"},
    "fft": {"n": 1021, "batch": 1000},
}


@pytest.fixture(scope="module")
def h200() -> Model:
    model = read_model(shipped_folder("h200"))
    model.meta["version"] = SHIPPED
    return model


TOLD: dict[str, tuple[Prediction, dict[str, Any], float]] = {}
"""Answers by question, each asked once: (prediction, advice, seconds of processor time that the advice took)."""


def told(model: Model, family: str, **given: Any) -> tuple[Prediction, dict[str, Any]]:
    key = f"{family} {given}"
    if key not in TOLD:
        asked = answered(family, platform="h200", model=model, **given)
        start = time.process_time()
        said = advice(asked)
        TOLD[key] = asked.prediction, said, time.process_time() - start
    return TOLD[key][0], copy.deepcopy(TOLD[key][1])


def test_a_product_that_does_not_divide_is_slower_by_alignment_and_padding_mends_it(h200: Model) -> None:
    found, said = told(h200, "gemm", **GEMM)
    plain = predict("gemm", platform="h200", model=h200, **GEMM | {"n": 4096})
    padded = predict("gemm", platform="h200", model=h200, **GEMM | {"n": 4104})
    ratio = found.predicted_s / plain.predicted_s
    assert ratio > 5.0
    readme = " ".join((Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"takes {ratio:.2g} times as long as n=4096 because of alignment, and that padding to n=4104" in readme
    first, second = said["said"]
    assert first.startswith(f"{ratio:.3g} times as long as at n=4096") and "because of alignment (x " in first
    assert second.startswith("n=4104 (padded to a multiple of 8): ") and " … " in second
    assert second.endswith(f"{found.predicted_s / padded.predicted_s:.3g} times faster")
    best = said["whatif"][0]
    assert (best["kind"], best["params"]["n"], best["verdict"], best["in_domain"]) == ("size", 4104, FASTER, True)
    assert best["predicted_s"] == pytest.approx(padded.predicted_s, rel=1e-5)
    assert (best["lower_s"], best["upper_s"]) == pytest.approx((padded.lower_s, padded.upper_s), rel=1e-5)
    assert best["gain"] == pytest.approx(found.predicted_s / best["predicted_s"])
    beside = said["learned"]["beside"]
    assert beside["params"] == {"n": 4096} and beside["ratio"] == pytest.approx(ratio, rel=1e-5)
    assert beside["parts"][0]["word"] == "alignment" and "align_n" in beside["parts"][0]["columns"]
    parts = math.prod(part["factor"] for part in beside["parts"])
    assert parts * beside["analytic_ratio"] == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize("family", QUESTIONS)
def test_parts_times_the_reference_give_the_learned_factor(h200: Model, family: str) -> None:
    found, said = told(h200, family, **QUESTIONS[family])
    learned = said["learned"]
    assert learned["factor"] == pytest.approx(found.predicted_s / found.calibrated_s)
    product = learned["reference"]["factor"] * math.prod(part["factor"] for part in learned["parts"])
    assert product == pytest.approx(learned["factor"], rel=1e-4)
    assert all(set(part) == {"word", "factor", "columns"} and part["columns"] for part in learned["parts"])
    sizes = [abs(math.log(part["factor"])) for part in learned["parts"]]
    assert len(sizes) >= 4 and sizes == sorted(sizes, reverse=True)
    assert json.loads(json.dumps(said, allow_nan=False)) == json.loads(json.dumps(said))


def test_what_is_said_of_inputs_is_theirs(h200: Model) -> None:
    words = {family: [part["word"] for part in told(h200, family, **QUESTIONS[family])[1]["learned"]["parts"]]
             for family in ("spmv_csr", "bfs", "fft")}
    assert {"row statistics", "structure of the input"} <= set(words["spmv_csr"][:3])
    assert words["bfs"][0] == "degree statistics" and words["fft"][0] == "prime factors"


def test_outside_the_training_range_the_fading_is_a_part(h200: Model) -> None:
    found, said = told(h200, "gemm", m=2**17, n=2**17, k=4096, precision="bf16")
    assert not found.in_domain
    parts = {part["word"]: part["factor"] for part in said["learned"]["parts"]}
    assert "outside the training range" in parts
    product = said["learned"]["reference"]["factor"] * math.prod(parts.values())
    assert product == pytest.approx(found.predicted_s / found.calibrated_s, rel=1e-4)


def test_where_nothing_was_learned_it_says_so(h200: Model) -> None:
    found, said = told(h200, "spmv_csr", rows=10**6, cols=10**6, nnz=10**7)
    assert found.predicted_s == pytest.approx(found.calibrated_s)
    assert said["learned"] == {"factor": 1.0, "reference": None, "parts": [], "words": NOTHING}
    _, counted = told(h200, "my_kernel", flops=1e9, bytes=1e8)
    assert counted["learned"]["parts"] == [] and "counts of other families" in counted["learned"]["words"]
    assert counted["whatif"] == []


def test_an_analytic_time_has_no_learned_part_and_still_its_changes(h200: Model) -> None:
    _, said = told(h200, "gemm", **GEMM, analytic=True)
    assert said["learned"] is None
    assert {item["kind"] for item in said["whatif"]} == {"size", "precision", "tile"}
    for item in said["whatif"]:
        if item["kind"] == "size":
            again = predict("gemm", platform="h200", model=h200, analytic=True, precision="bf16", **item["params"])
            assert item["predicted_s"] == pytest.approx(again.predicted_s) and item["verdict"] == WITHIN


@pytest.mark.parametrize("family", ["gemm", "spmv_csr", "softmax"])
def test_every_change_is_answered_as_if_it_had_been_asked_alone(h200: Model, family: str) -> None:
    found, said = told(h200, family, **QUESTIONS[family])
    assert len({item["change"] for item in said["whatif"]}) == len(said["whatif"]) >= 4
    for item in said["whatif"]:
        if item["kind"] == "tile":
            continue
        again = predict(family, platform="h200", model=h200, precision=item["precision"], cache=found.cache,
                        implementation=item["implementation"], **item["params"])
        assert item["predicted_s"] == pytest.approx(again.predicted_s, rel=1e-5)
        assert (item["lower_s"], item["upper_s"]) == pytest.approx((again.lower_s, again.upper_s), rel=1e-5)
        assert item["in_domain"] == again.in_domain


def test_implementations_are_those_that_ran_in_this_precision(h200: Model) -> None:
    _, said = told(h200, "gemm", **GEMM)
    named = [item["implementation"] for item in said["whatif"] if item["kind"] == "implementation"]
    assert set(named) == {"torch_flow", "vllm_torch_linear", "sglang_torch_linear"}  # no fp8 library, no fp32 tile16
    _, said = told(h200, "spmv_csr", **MATRIX)
    ranked = [item for item in said["whatif"] if item["kind"] == "implementation"]
    assert {item["implementation"] for item in ranked} == {"csr_scalar", "csr_vector", "csr_merge"}
    assert {item["verdict"] for item in ranked} == {SLOWER}


def test_precisions_are_lower_ones_the_family_was_learned_in_and_a_caution_goes_with_them(h200: Model) -> None:
    for given, wanted in ((GEMM, {"fp8"}), (GEMM | {"precision": "fp32"}, {"tf32", "bf16", "fp16", "fp8"})):
        _, said = told(h200, "gemm", **given)
        lower = [item for item in said["whatif"] if item["kind"] == "precision"]
        assert {item["precision"] for item in lower} == wanted
        assert all("yours to judge" in item["caution"] for item in lower)
    assert not [item for item in told(h200, "bfs", **GRAPH)[1]["whatif"] if item["kind"] == "precision"]


def test_layout_and_powers_of_two_and_channels_are_tried(h200: Model) -> None:
    _, said = told(h200, "gather", table=10**6, n=10**7, order="random")
    assert [(i["change"], i["verdict"]) for i in said["whatif"] if i["kind"] == "layout"] == [("order=sorted", FASTER)]
    _, said = told(h200, "fft", n=1030, batch=100)
    assert {item["params"]["n"] for item in said["whatif"] if item["kind"] == "size"} == {1032, 1040, 1088, 1152, 2048}
    _, said = told(h200, "conv2d", batch=32, cin=3, cout=64, height=224, width=224, kernel_h=3, kernel_w=3)
    sizes = [item["change"] for item in said["whatif"] if item["kind"] == "size"]
    assert sizes == ["cin=8 (padded to a multiple of 8)"]


def test_sizes_are_padded_up_and_not_by_more_than_half() -> None:
    question = ask("gemm", {"m": 1, "n": 50, "k": 4096}, "bf16", "warm", None)
    found = changes(question, load_platform("h200"), None)
    sizes = [one.question.params["n"] for one in found if one.kind == "size"]
    assert sizes == [56, 64] and all(one.question.params["m"] == 1 for one in found)
    assert plain_question(ask("gemm", {"m": 4096, "n": 128, "k": 64}, "bf16", "warm", None)) is None
    odd = plain_question(ask("gemm", {"m": 4095, "n": 1000, "k": 33}, "bf16", "warm", None))
    assert odd is not None and odd.params == {"m": 4096, "n": 1024, "k": 32}


def test_only_sizes_that_zeros_can_fill_are_padded() -> None:
    def pads(family: str, **params: Any) -> list[str]:
        return sizes_to_pad(ask(family, params, None, "warm", None))

    assert pads("attention", batch=3, heads=5, seq=100, head_dim=64) == ["seq", "head_dim"]
    assert pads("spmm_csr", cols_dense=30, rows=99, cols=99, nnz=300) == ["cols_dense"]
    assert pads("bfs", nodes=99, edges=300, levels=3) == []
    every = {param.name for family in FAMILIES.values() for param in family.params}
    assert plain.GIVEN | plain.OF_IRREGULAR | set(plain.FOLLOWS) | set().union(*plain.OF_FAMILY.values()) <= every


def test_faster_is_what_lies_beyond_both_bands(h200: Model) -> None:
    now = replace(predict("gemm", platform="h200", model=h200, **GEMM), predicted_s=1.0, lower_s=0.8, upper_s=1.25)
    # log 1.25 on each side: together sqrt(2) * 0.2231 = 0.3156, a factor of 1.371
    assert _verdict(now, 1 / 1.38, 0.8 / 1.38, 1.25 / 1.38) == FASTER
    assert _verdict(now, 1 / 1.36, 0.8 / 1.36, 1.25 / 1.36) == WITHIN
    assert _verdict(now, 1.36, 0.8 * 1.36, 1.25 * 1.36) == WITHIN
    assert _verdict(now, 1.38, 0.8 * 1.38, 1.25 * 1.38) == SLOWER
    sharp = replace(now, lower_s=0.9999, upper_s=1.0001)
    assert _verdict(sharp, 0.995, 0.9949, 0.9951) == WITHIN  # below 1 % nobody cares
    assert _verdict(now, 0.5, None, None) == UNBOUNDED


def test_it_takes_less_than_a_second(h200: Model) -> None:
    for family, given in QUESTIONS.items():
        told(h200, family, **given)
        assert TOLD[f"{family} {given}"][2] < 1.0, family


def printed(facts: dict[str, Any]) -> str:
    import io

    from rich.console import Console

    out = Console(file=io.StringIO(), width=140, markup=False, highlight=False, color_system=None)
    print_advice(out, facts)
    return out.file.getvalue()  # type: ignore[attr-defined]


def test_explain_shows_the_parts_and_the_changes(h200: Model) -> None:
    facts = explanation(answered("gemm", platform="h200", model=h200, **GEMM))
    assert {"learned", "whatif", "said", "sensitivity"} <= set(facts)
    shown = printed(facts)
    for words in ("times as long as at n=4096", "because of alignment", "everything else", "within the band",
                  "n=4104 (padded to a multiple of 8)", "precision: whether the result"):
        assert words in shown
    _, bare = told(h200, "spmv_csr", rows=10**6, cols=10**6, nnz=10**7)
    assert NOTHING in printed(bare)


def test_names_from_outside_do_not_drive_the_terminal(h200: Model) -> None:
    _, said = told(h200, "gemm", **GEMM)
    evil = "\x1b[31m[bold]evil\x07"
    said["whatif"][0] |= {"change": f"implementation={evil}", "caution": evil}
    said["learned"]["reference"]["implementation"] = evil
    said["learned"]["parts"][0]["columns"] = [evil]
    shown = printed(said | {"said": [evil]})
    assert "\x1b" not in shown and "\x07" not in shown and shown.count("[bold]evil") >= 4
