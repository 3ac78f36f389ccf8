"""What a name stands for: a kernel family or an application."""

from __future__ import annotations


def is_application(name: str) -> bool:
    """Whether a name is that of an application: a YAML file, or a shipped one by its name."""
    if name.endswith((".yaml", ".yml")):
        return True
    if "-" not in name:  # no shipped application is without one, no kernel family with one
        return False
    from ..analytic.workload_file import shipped_workloads

    return name in shipped_workloads()
