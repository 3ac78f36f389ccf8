"""Kernel families: parameters and work."""
