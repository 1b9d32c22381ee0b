"""Java's class archive (AppCDS): the classes of one run, mapped into the next, which starts in 60 % of the time.

The first broker on a set of jars records its classes and writes them when it ends, which takes it some 3 s more.
Java maps an archive without looking whether it is whole and crashes on a truncated one, so an archive is only
used when a clean stop has sealed it with its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.broker.java import Java


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one set of jars and one Java version."""

    path: Path

    @staticmethod
    def of(libs: Path, java: Java) -> ClassArchive:
        """The archive that belongs to these jars and this Java, whether it exists or not."""
        return ClassArchive(libs / f"classes-{java.version}.jsa")

    @property
    def seal_file(self) -> Path:
        """Holds the size that the whole archive has."""
        return self.path.with_suffix(".size")

    def is_sealed(self) -> bool:
        """True if the archive is there as it was when it was sealed."""
        try:
            return self.path.stat().st_size == int(self.seal_file.read_text())
        except (OSError, ValueError):
            return False

    def seal(self) -> None:
        """Declare the archive whole; to be called when the process that wrote it has ended by itself."""
        if self.path.exists():
            self.seal_file.write_text(str(self.path.stat().st_size))

    def use_flags(self) -> list[str]:
        """Java flags that use the archive; none if it isn't whole."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.is_sealed() else []

    def record_flags(self) -> list[str]:
        """Java flags that write the archive at exit."""
        return [f"-XX:ArchiveClassesAtExit={self.path}"]
