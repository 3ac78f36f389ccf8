"""What learns from or scores against measured runs: run table, splits, residual, bands, baselines, comparison."""
