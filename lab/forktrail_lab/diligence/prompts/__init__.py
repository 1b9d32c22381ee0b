"""What the analyst is told, a file for each task; read once, when the pack is imported."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def _text(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


QUESTIONS, RESEARCH, WEIGHING, MEMO = map(_text, ("questions", "research", "weighing", "memo"))
