"""The codec: what goes in comes out bit by bit, and nothing but plain data can be read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.registry.codec import CodecError, Sink, Source, pack, unpack
from kernelcast.training.hybrid.bands import Bands
from kernelcast.training.hybrid.encode import Encoder


def there_and_back(value: Any) -> Any:
    sink = Sink()
    text = json.dumps(pack(value, sink), allow_nan=False)
    return unpack(json.loads(text), Source(sink.arrays.__getitem__, lambda index: pytest.fail("no booster")))


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    | st.tuples(inner, inner), max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(trees)
def test_plain_data_round_trips_exactly(tree: Any) -> None:
    back = there_and_back(tree)
    assert back == tree
    assert repr(back) == repr(tree)  # a tuple stays one, -0.0 and True keep their kind


def test_not_finite_numbers_survive_strict_json() -> None:
    assert there_and_back([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.isnan(there_and_back(math.nan))


@pytest.mark.parametrize("size", [0, 3, 64, 65, 500])  # on both sides of the border between JSON and .npz
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "bool", "<U7"])
def test_arrays_keep_dtype_shape_and_bits(size: int, dtype: str) -> None:
    array = np.random.default_rng(1).standard_normal(size).astype(dtype)
    back = there_and_back({"a": array})["a"]
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_matrix_and_object_arrays_keep_their_shape() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    names = np.array([["a", None], ["b", "c"]], dtype=object)
    back = there_and_back((matrix, names))
    np.testing.assert_array_equal(back[0], matrix)
    np.testing.assert_array_equal(back[1], names)


def test_dataclasses_of_training_come_back_as_themselves() -> None:
    bands = Bands(np.arange(100.0), {"gemm": np.arange(3.0)})
    back = there_and_back({"bands": bands, "encoder": Encoder(["a"], {"precision": ["fp16"]})})
    assert isinstance(back["bands"], Bands)
    np.testing.assert_array_equal(back["bands"].by_class["gemm"], [0.0, 1.0, 2.0])
    assert back["encoder"] == Encoder(["a"], {"precision": ["fp16"]})


def test_a_field_by_the_name_that_older_files_have_for_it() -> None:
    fields = {"booster": None, "process": None, "process_weight": 0.25}
    back = unpack({"$class": "training.residual.Residual", "fields": fields}, Source({}.__getitem__, [].__getitem__))
    assert back.smooth_share == 0.25
    with pytest.raises(CodecError, match="other fields"):
        unpack({"$class": "Residual", "fields": {**fields, "weight": 1.0}}, Source({}.__getitem__, [].__getitem__))


@dataclass
class Foreign:
    x: int = 1


@pytest.mark.parametrize("value", [Foreign(), {1, 2}, b"bytes", len, object()])
def test_foreign_objects_are_not_written(value: Any) -> None:
    with pytest.raises(TypeError):
        pack({"x": value}, Sink())


@pytest.mark.parametrize(
    "data",
    [
        {"$class": "os.path.join", "fields": {}},
        {"$class": "training.model.np.ndarray", "fields": {}},
        {"$class": "training.train.fit_model", "fields": {}},
        {"$class": "training.nowhere.Thing", "fields": {}},
        {"$class": "training.bands.Bands", "fields": {"pooled": 1, "more": 2}},
        {"$class": "training.bands.Bands"},
        {"$class": ["training.bands.Bands"], "fields": {}},
        {"$pickle": "gASVAAAA"},
        {"$array": "missing"},
        {"$small": [1, 2], "dtype": "float64", "shape": [3]},
        {"$small": [1], "dtype": "nonsense", "shape": [1]},
        {"$float": "abc"},
        {"$items": [1]},
    ],
)
def test_anything_else_is_refused(data: Any) -> None:
    with pytest.raises(CodecError):
        unpack({"a": [data]}, Source({}.__getitem__, [].__getitem__))
