"""Other people's measured tables, turned into the run table."""
