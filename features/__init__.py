"""Workloads and baselines described as numbers: feature rows, sparse-matrix and graph descriptors."""
