"""`python -m kernelcast`: the command line."""

from __future__ import annotations

from .service.cli.main import run

if __name__ == "__main__":
    run()
