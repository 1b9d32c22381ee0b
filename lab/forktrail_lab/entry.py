"""Where `forktrail` begins: Ctrl-C is heard quietly from here on, also while the rest is imported."""

from __future__ import annotations

EXIT_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def main() -> int:
    """Run the command; returns its exit code."""
    try:
        from forktrail_lab import cli

        return cli.main()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
