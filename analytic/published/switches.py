"""Ways to read the printed equations: parameter -> (meaning, what holds where no file says otherwise, other ways)."""

from __future__ import annotations

SWITCHES: dict[str, tuple[str, ...]] = {
    "sync_count": ("T_sync of eqs. (7) and (8): in the input side only, or in both as printed", "once", "twice"),
    "wave_term": ("kernel time over all waves of the grid, or of one CTA as printed", "grid", "one_cta"),
    "step_form": ("eq. (12) never below the longer of its two times, or as printed", "guarded", "printed"),
    "k_step": ("a K-step by eq. (8), or the steady state of a full pipeline above it", "step", "pipelined"),
    "occupancy_rule": ("wavefronts by the hardware's allocation, or by the rule printed under eq. (9)", "hardware",
         "printed"),
    "tmem_strategy": ("tensor memory holds A: accumulators only, B: the A operand as well", "A", "B"),
    "cta_pairs": ("CTA pairs of eq. (6) on adjacent SMs", "off", "on"),
    "tma_order": ("TMA copies of A and B side by side, or one after the other", "overlapped", "serial"),
    "store_by": ("write-back of an output tile by TMA, or by plain stores", "tma", "plain"),
    "tile_closing": ("store and closing barrier once behind the last tile (persistent kernel), or in every wave",
         "once", "each_wave"),
}
