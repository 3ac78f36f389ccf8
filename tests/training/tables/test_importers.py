"""Corpora adapters on small tables of our own in the published layouts, and on the real ones where they are there."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.training.tables.importers import CORPORA, aiter, autotune, corpus_facts, ginkgo, load_corpus, mi300a
from kernelcast.training.tables.importers import aiconfigurator as nvidia
from kernelcast.training.tables.importers.common import json_params
from kernelcast.training.tables.schema import COLUMNS, canonical_params, params_frame

DATA = Path(os.environ.get("KERNELCAST_DATA", "no development data"))
CONVERTED = sorted(set(CORPORA) - {"aiconfigurator"})
# rows as counted in the published tables; of SpMV, 90,730 less the 478 of the A100 run which is left out
ROWS = {"aiter": 33_867, "autotune": 30_823, "ginkgo": 90_730 - 478, "mi300a": 441}


def save(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    base = {"precision": "fp64", "statistic": "mean", "spread_s": np.nan, "n_reps": 10, "cache": "warm"}
    base |= {"launches": 1, "scope": "kernel", "flops": np.nan, "bytes": np.nan, "source": "s", "license": "MIT"}
    frame = pd.DataFrame([{**base, "time_min_s": np.nan, **row} for row in rows])
    frame.to_parquet(folder / corpus_facts(name)["file"])


def save_nvidia(folder: Path, table: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / "aiconfigurator" / f"{table}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize("name", sorted(CORPORA))
def test_facts_carry_what_attribution_needs(name: str) -> None:
    facts = corpus_facts(name)
    assert facts["name"] == name
    assert facts["license"]["spdx"] and facts["license"]["holder"] and facts["attribution"] and facts["caveats"]
    assert facts["time"]["statistic"] in ("mean", "median", "min") and facts["time"]["cache"] in ("warm", "cold")
    assert facts["test_rule"] and facts["get"] and facts["source"]


@pytest.mark.parametrize("name", CONVERTED)
def test_missing_data_says_how_to_get_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELCAST_DATA", raising=False)
    with pytest.raises(InputError, match="KERNELCAST_DATA"):
        load_corpus(name)
    with pytest.raises(InputError, match=r"is missing; it is .* converted to the run table"):
        load_corpus(name, tmp_path)
    (tmp_path / corpus_facts(name)["file"]).write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        load_corpus(name, tmp_path)


def test_missing_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'kernelcast\[corpora\]'"):
        load_corpus("aiconfigurator", tmp_path)
    with pytest.raises(InputError, match="did you mean ginkgo"):
        load_corpus("gingko")


GEMM = {"framework": "TRTLLM", "version": "1", "kernel_source": "torch_flow", "device": "x", "op_name": "gemm"}


def test_nvidia_gemm_rows(tmp_path: Path) -> None:
    rows = [
        {**GEMM, "gemm_dtype": "bfloat16", "m": 1, "n": 4096, "k": 512, "latency": 0.25},
        {**GEMM, "gemm_dtype": "fp8_block", "m": 8, "n": 4096, "k": 512, "latency": 0.5},
        {**GEMM, "gemm_dtype": "int4_wo", "m": 8, "n": 64, "k": 512, "latency": 1.0},
    ]
    save_nvidia(tmp_path, "h200_sxm/gemm/trtllm/1/gemm_perf", rows)
    save_nvidia(tmp_path, "gb200/gemm/trtllm/1/gemm_perf", rows)
    frame = load_corpus("aiconfigurator", tmp_path)
    assert frame["platform"].unique().tolist() == ["h200"]  # gb200 comes only when asked for
    assert frame["time_s"].tolist() == [0.25e-3, 0.5e-3, 1e-3]  # published in ms
    assert frame["precision"].tolist() == ["bf16", "fp8", "bf16"]
    assert frame["params"].tolist() == [
        '{"k":512,"m":1,"n":4096}',
        '{"k":512,"m":8,"n":4096,"scheme":"fp8_block"}',
        '{"k":512,"m":8,"n":64,"scheme":"int4_wo"}',
    ]
    assert frame["group"].tolist() == ["n4096k512", "n4096k512", "n64k512"]
    assert set(frame["implementation"]) == {"torch_flow"} and set(frame["license"]) == {"Apache-2.0"}
    assert set(frame["cache"]) == {"warm"} and set(frame["statistic"]) == {"mean"} and set(frame["scope"]) == {"kernel"}
    assert load_corpus("aiconfigurator", tmp_path, platforms=["gb200"])["platform"].unique().tolist() == ["gb200"]


def test_nvidia_attention_rows(tmp_path: Path) -> None:
    row = {
        "framework": "VLLM",
        "version": "1",
        "kernel_source": "vllm_flash_attn_fa3",
        "num_heads": 32,
        "beam_width": 1,
    }
    row |= {"batch_size": 2, "num_key_value_heads": 8, "head_dim": 128, "attn_dtype": "bfloat16", "latency": 1.0}
    context = [
        {**row, "isl": 1024, "step": 0, "kv_cache_dtype": "bfloat16"},
        {**row, "isl": 1, "step": 0, "kv_cache_dtype": "bfloat16"},
    ]
    save_nvidia(tmp_path, "h200_sxm/attention/vllm/1/context_attention_perf", context)  # old: no window_size
    generation = [{**row, "isl": 1, "step": 99, "kv_cache_dtype": "fp8", "window_size": 64}]
    save_nvidia(tmp_path, "h200_sxm/attention/vllm/1/generation_attention_perf", generation)
    frame = load_corpus("aiconfigurator", tmp_path)
    shared = {"batch": 2, "causal": True, "head_dim": 128, "heads": 32, "kv_heads": 8}
    assert [json.loads(text) for text in frame["params"]] == [
        {**shared, "q_len": 1024, "kv_len": 1024},
        {**shared, "q_len": 1, "kv_len": 100, "window": 64, "kv_precision": "fp8"},  # 99 cached + 1 new
    ]
    assert frame["phase"].tolist() == ["context", "generation"]
    assert set(frame["group"]) == {"h32kv8d128"}
    everything = load_corpus("aiconfigurator", tmp_path, keep_single_token_prefill=True)
    assert len(everything) == 3


def test_borrowed_tables_are_left_out(tmp_path: Path) -> None:
    rows = [{**GEMM, "gemm_dtype": "bfloat16", "m": 1, "n": 64, "k": 64, "latency": 1.0}]
    save_nvidia(tmp_path, "b200_sxm/gemm/trtllm/1/gemm_perf", rows)
    path = save_nvidia(tmp_path, "b200_sxm/gemm/trtllm/2/gemm_perf", [{**rows[0], "version": "2"}])
    assert len(load_corpus("aiconfigurator", tmp_path)) == 2
    (path.parent / "reuse.yaml").write_text("reuse:\n- table: gemm_perf\n  from_version: '1'\n")
    assert load_corpus("aiconfigurator", tmp_path)["version"].tolist() == ["1"]


def test_unknown_dtype_family_and_layout_are_loud(tmp_path: Path) -> None:
    row = {**GEMM, "gemm_dtype": "fp3", "m": 1, "n": 64, "k": 64, "latency": 1.0}
    save_nvidia(tmp_path, "b200_sxm/gemm/trtllm/1/gemm_perf", [row])
    with pytest.raises(InputError, match="gemm_dtype 'fp3' is unknown"):
        load_corpus("aiconfigurator", tmp_path)
    with pytest.raises(InputError, match="unknown family 'gem'"):
        load_corpus("aiconfigurator", tmp_path, families=["gem"])
    with pytest.raises(InputError, match="no row is left"):
        load_corpus("aiconfigurator", tmp_path, platforms=["mi300x"])
    save_nvidia(tmp_path, "b200_sxm/gemm/trtllm/1/gemm_perf", [{"m": 1}])
    with pytest.raises(InputError, match="has no column framework"):
        load_corpus("aiconfigurator", tmp_path)


# remainders by `printf %s SITE | sha1sum` and `bc` (the 40 digits modulo 5), not by this code
REMAINDERS = {
    "n4096k4096": 0,
    "n2048k7168": 0,
    "n512k512": 0,
    "n8192k1024": 2,
    "n64k512": 4,
    "h32kv8d128": 4,
    "h64kv8d128": 4,
}


def test_common_test_split_rule() -> None:
    expected = [remainder == 0 for remainder in REMAINDERS.values()]
    assert [nvidia.is_test(site) for site in REMAINDERS] == expected
    assert nvidia.in_test_split(pd.DataFrame({"group": list(REMAINDERS)})).tolist() == expected


@pytest.mark.parametrize(
    ("adapter", "raw", "short"),
    [
        (aiter, "aiter ck/asm splitK=0 _ZN5x [a.csv]", "ck_asm"),
        (aiter, "aiter cktile splitK=3 y [b/c.csv]", "cktile"),
        (ginkgo, "Ginkgo csr", "ginkgo_csr"),
        (ginkgo, "Ginkgo csrc", "ginkgo_csr_classical"),
        (ginkgo, "Ginkgo hybrid", "ginkgo_hybrid"),
        (ginkgo, "Ginkgo hybrid33", "ginkgo_hybrid_33"),
        (ginkgo, "Ginkgo hybridlimit0", "ginkgo_hybrid_limit_0"),
        (ginkgo, "Ginkgo hybridminstorage", "ginkgo_hybrid_minstorage"),
        (ginkgo, "hipSPARSE csrmm", "hipsparse_csr_spmm"),
        (ginkgo, "cuSPARSE gcsr2", "cusparse_csr_generic2"),
        (mi300a, "mgpusim gpu_perf_scripts/bfs.cpp (bfs; HIP)", "mgpusim"),
        (autotune, "benchmark_hub kernels/convolution_milo (HIP, Kernel Tuner)", "kernel_tuner_hip"),
    ],
)
def test_short_implementation_names(adapter: Any, raw: str, short: str) -> None:
    assert adapter.short_implementation(raw) == short


@pytest.mark.parametrize(
    ("framework", "source", "short"),
    [
        ("TRTLLM", "torch_flow", "torch_flow"),
        ("VLLM", "torch.nn.functional.linear", "vllm_torch_linear"),
        ("SGLang", "fa3", "sglang_fa3"),
        ("VLLM", "Some.NewKernel-v2", "vllm_some_newkernel_v2"),
    ],
)
def test_short_nvidia_names(framework: str, source: str, short: str) -> None:
    assert nvidia.short_implementation(framework, source) == short


def test_ginkgo_decisions(tmp_path: Path) -> None:
    row = {"kernel": "spmv_csr", "params": '{"nnz":9}', "group": "HB/west", "implementation": "Ginkgo csr"}
    branch = "x (branch A100)"
    rows = [
        {**row, "platform": "a100-sxm", "time_s": 1e-5, "source": branch},
        {**row, "platform": "a100-sxm", "time_s": 2e-5, "source": "x@1"},
        {**row, "platform": "mi250x-gcd", "time_s": 3e-5},
        {**row, "platform": "mi250x-gcd", "time_s": 5.0, "implementation": "hipSPARSE csr"},
        {**row, "platform": "mi250x-gcd", "time_s": 3.1e-3, "group": "HB/other", "implementation": "hipSPARSE csr"},
    ]
    save(tmp_path, "ginkgo", rows)
    frame = load_corpus("ginkgo", tmp_path)
    assert frame["time_s"].tolist() == [1e-5, 3e-5, 5.0, 3.1e-3]
    assert set(frame["group"]) == {"HB"} and set(frame["matrix"]) == {"HB/west", "HB/other"}
    assert load_corpus("ginkgo", tmp_path, a100_run="commit")["time_s"].tolist()[0] == 2e-5
    assert len(load_corpus("ginkgo", tmp_path, a100_run="both")) == 5
    # 5 s > 100 · 3e-5 s goes; the other matrix has no Ginkgo time to be compared with and stays
    assert load_corpus("ginkgo", tmp_path, keep_extremes=False)["time_s"].tolist() == [1e-5, 3e-5, 3.1e-3]


def test_aiter_decisions(tmp_path: Path) -> None:
    row = {"kernel": "gemm", "time_s": 1e-5, "cache": "cold", "implementation": "aiter asm splitK=0 k [t.csv]"}
    rows = [
        {**row, "platform": "mi300x", "params": '{"m":1,"n":2,"k":3,"scheme":"bf16","out_dtype":"bfloat16"}'},
        {**row, "platform": "mi355x", "params": '{"m":1,"n":2,"k":3,"scheme":"a8w8_rowwise"}'},
    ]
    save(tmp_path, "aiter", [{**item, "group": "N2K3"} for item in rows])
    frame = load_corpus("aiter", tmp_path)
    assert frame["group"].tolist() == ["n2k3", "n2k3"]
    assert [json.loads(text).get("scheme") for text in frame["params"]] == [None, "a8w8_rowwise"]
    assert frame["implementation_raw"].tolist() == ["aiter asm splitK=0 k [t.csv]"] * 2
    assert load_corpus("aiter", tmp_path, platforms=["mi355x"])["platform"].tolist() == ["mi355x"]


def test_mi300a_decisions(tmp_path: Path) -> None:
    row = {"platform": "mi300a", "params": '{"n":1}', "group": "g", "implementation": "mgpusim a"}
    rows = [
        {**row, "kernel": "relu", "time_s": 3e-5, "time_min_s": 1e-5},
        {**row, "kernel": "bfs", "time_s": 4e-5, "time_min_s": 2e-5, "scope": "kernel+transfers"},
    ]
    save(tmp_path, "mi300a", rows)
    frame = load_corpus("mi300a", tmp_path)
    assert frame["time_s"].tolist() == [1e-5, 2e-5] and set(frame["statistic"]) == {"min"}
    assert frame["time_mean_s"].tolist() == [3e-5, 4e-5]
    assert load_corpus("mi300a", tmp_path, use_minimum=False)["time_s"].tolist() == [3e-5, 4e-5]
    assert load_corpus("mi300a", tmp_path, kernels_only=True)["kernel"].tolist() == ["relu"]


def test_json_params_are_canonical() -> None:
    texts = json_params(
        {"m": np.array([1, 2]), "b": np.array([True, False]), "s": np.array([None, 'a"b'], dtype=object)}
    )
    assert texts.tolist() == [canonical_params({"m": 1, "b": True}), canonical_params({"m": 2, "b": False, "s": 'a"b'})]
    with pytest.raises(ValueError, match="must be present"):
        json_params({"a": np.array([None, 1], dtype=object)})


@pytest.mark.parametrize("name", CONVERTED)
def test_real_converted_corpora(name: str) -> None:
    if not (DATA / corpus_facts(name)["file"]).is_file():
        pytest.skip(f"no {corpus_facts(name)['file']} in the development data (KERNELCAST_DATA)")
    frame = load_corpus(name, DATA)
    facts = corpus_facts(name)
    assert list(frame.columns[: len(COLUMNS)]) == list(COLUMNS)
    assert set(frame["platform"]) == {*facts["platforms"], *facts.get("platforms_training_only", ())}
    assert set(frame["kernel"]) == set(facts["families"])
    assert set(frame["license"]) == {facts["license"]["spdx"]}
    assert frame["implementation"].str.fullmatch(r"[a-z0-9_]+").all()
    assert len(frame) == ROWS[name]
    sample = load_corpus(name, DATA, max_rows=100, seed=3)
    assert len(sample) == 100 and sample.equals(load_corpus(name, DATA, max_rows=100, seed=3))


def test_real_nvidia_package(tmp_path: Path) -> None:
    if importlib.util.find_spec("aiconfigurator_core") is None:
        pytest.skip("aiconfigurator-core is not installed (extra `corpora`)")
    frame = load_corpus("aiconfigurator", tmp_path, max_rows=4000, platforms=["a100-sxm"])
    assert len(frame) == 4000 and set(frame["kernel"]) == {"gemm", "attention"}
    assert frame["implementation"].str.fullmatch(r"[a-z0-9_]+").all()
    numbers = params_frame(frame[frame["kernel"] == "gemm"])
    assert (numbers[["m", "n", "k"]] >= 1).all(axis=None)
    # no product is quicker than the A100's dense int8 peak of 624 Top/s
    flop = 2.0 * numbers["m"] * numbers["n"] * numbers["k"]
    assert (flop / frame.loc[numbers.index, "time_s"]).max() < 624e12
    assert nvidia.in_test_split(frame).mean() == pytest.approx(0.2, abs=0.06)
