"""Data: platforms, suites, run tables, champion models, training defaults."""
