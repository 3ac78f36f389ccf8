"""What the columns that a residual is learned from mean to whoever asked: each under a word for what can be changed."""

from __future__ import annotations

import re
from functools import cache

from ...analytic.families import FAMILIES

ALIGNMENT = "alignment"
PADDING = "padding to whole tiles"
LAST_WAVE = "last wave"
WORK = "amount of work"
PRECISION = "precision"
IMPLEMENTATION = "implementation"
OTHER = "other columns"
"""Columns without a word: those of a family that an extension adds."""

STATISTICS: tuple[tuple[str, str], ...] = (
    (r"log2_row_(mean|std|max|min|q1|median|q3)|row_(std|max)_over_mean", "row statistics"),
    (r"log2_(avg|max|std)_degree|(max|std)_over_avg_degree", "degree statistics"),
    (r"log2_mean_col_distance|distance_over_cols|structure", "structure of the input"),
)
"""Pattern of a column → word, for numbers of an input that are no size of it."""
PATTERNS: tuple[tuple[str, str], ...] = (
    (r"(align|pow2|whole)_\w+|\w+_is_whole|\w+_of_(fours|eights)|odd_pixels|needs_padding", ALIGNMENT),
    (r"rough_part|largest_prime|power_\w+|bluestein|medium_prime|log2_cofactor|log2_padded", "prime factors"),
    (r"pad_\w+|log2_pad_ratio", PADDING),
    (r"tail_\w+|cost_\w+|log2_waves|log2_wave_efficiency|share_tail", LAST_WAVE),
    (r"m_upto_\d+|log2_tile_\w+|log2_split_k|per_unit_\w+|serial_\w+|log2_serial|log2_k_steps|log2_steps_shared"
     r"|log2_walk_\d+|log2_ctas_128|log2_narrow_per_unit|causal_serial", "tiling"),
    (r"log2_(n_over_m|k_over_mn|mn|min_mn|least|kv_over_q|group|length)", "shape"),
    (r"element_byte|log2_convert|(kv_)?precision", PRECISION),
    (IMPLEMENTATION, IMPLEMENTATION),
    (r"scheme", "quantisation scheme"),
    (r"name", "name of the kernel"),
    (r"order", "order of the accesses"),
    (r"layout\w*|trans_\w+", "layout"),
    (r"cold", "cache state"),
    (r"log2_\w+_over_(cache|l1)|beyond_half_cache|log2_working_set|log2_(dense|image)_set|log2_reread(_ratio)?"
     r"|log2_draws_per_entry|log2_key_reads|log2_(row_byte|line|plane)|fits_shared", "cache fit and reuse"),
    (r"share_(launch|latency|sync)|log2_launches|log2_chain", "launch and latency"),
    (r"log2_(row_|longest_)?(steps|walks?)|log2_(warp_|block_)?rounds|log2_per_thread|log2_lane_work|log2_longest_share"
     r"|log2_row_work", "steps in a row"),
    (r"log2_(run|sectors|warp_probes|grid_probes)", "probes"),
    (r"log2_\w+_per_(unit|warp|level)|log2_(blocks|grid|parts|bh|batch_kv_heads|resident)", "parallelism"),
    (r"by_warp|one_block|two_passes|bins_shared|short_rows?|small_row|pointwise|swapped|is_split", "kernel variant"),
    (r"log2_(flop|byte|intensity|base\w*|one_flop|one_byte|points|pixels|output|taps|window|rows|round_flop|merged\w*)"
     r"|share_(compute|memory|writeback|guard)", WORK),
)
"""As STATISTICS, for all else that is no parameter of the family; the first pattern that fits counts."""


@cache
def word_of(column: str, family: str) -> str:
    """The word of a feature column or of a category (`implementation`, or `implementation=cublas`) of a family.

    Sizes have one each (`size of n`), other parameters their name; OTHER where nothing fits.
    """
    name = column.partition("=")[0]
    for pattern, word in STATISTICS:
        if re.fullmatch(pattern, name):
            return word
    kinds = {param.name: param.kind for param in FAMILIES[family].params} if family in FAMILIES else {}
    own = name.removeprefix("log2_")
    if own in kinds and kinds[own] != "text":
        return f"size of {own}" if kinds[own] == "size" else own
    return next((word for pattern, word in PATTERNS if re.fullmatch(pattern, name)), OTHER)
