"""Accuracy on splits fixed beforehand: every baseline on the same rows, bands checked, one command for the report."""
