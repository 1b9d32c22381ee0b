"""Damaged data folders, with the real Kafka: refused with what to do, and doing it loses nothing."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_schemas.errors import BrokerError
from support.local_broker import (
    ignore,
    values_after_a_start,
)


class TestDamagedData:
    def test_a_lost_identity_is_told_with_what_it_has_to_say_and_nothing_is_lost(
        self, layout: BrokerLayout, used: str
    ) -> None:
        (layout.data / "meta.properties").unlink()
        with pytest.raises(BrokerError, match=f"holds topics \\({used}-0, 1 partitions in all\\)") as raised:
            control.start(layout, free_port(), ignore)
        assert raised.value.code == "data_damaged"
        (directory,) = (word for word in raised.value.hint.split() if word.startswith("directory.id="))
        lines = ["version=1", "node.id=1", directory, "cluster.id=Zm9ya3RyYWlsLWNvbXBvcw", ""]
        (layout.data / "meta.properties").write_text("\n".join(lines))
        assert values_after_a_start(layout, used) == [b"x"]

    def test_an_identity_of_another_folder_is_refused_and_its_own_put_back_loses_nothing(
        self, layout: BrokerLayout, used: str
    ) -> None:
        identity = layout.data / "meta.properties"
        own = identity.read_text()
        other = [line for line in own.splitlines() if "directory.id" not in line and "cluster.id" not in line]
        identity.write_text(
            "\n".join([*other, "directory.id=DXalVro8UNMIiqcTPDVZxg", "cluster.id=_XtfFnIjk_N6ZSudMd5_kQ"])
        )
        with pytest.raises(BrokerError, match="is that of another data folder") as raised:
            control.start(layout, free_port(), ignore)
        assert raised.value.code == "data_damaged"
        identity.write_text(own)
        assert values_after_a_start(layout, used) == [b"x"]

    @pytest.mark.parametrize("length", [0, 600])
    def test_a_metadata_log_that_was_cut_is_refused_and_put_back_loses_nothing(
        self, layout: BrokerLayout, used: str, length: int
    ) -> None:
        (log,) = (layout.data / "__cluster_metadata-0").glob("*.log")
        whole = log.read_bytes()
        log.write_bytes(whole[:length])
        with pytest.raises(BrokerError, match=f"{used}-0 holds events of a topic") as raised:
            control.start(layout, free_port(), ignore)
        assert raised.value.code == "data_damaged"
        log.write_bytes(whole)
        assert values_after_a_start(layout, used) == [b"x"]

    def test_data_that_can_not_be_written_is_told_and_nothing_is_lost(
        self, layout: BrokerLayout, used: str, mount: Callable[..., None]
    ) -> None:
        data = str(layout.data)
        if os.geteuid() == 0:  # whom no permission keeps out
            mount("--bind", data, data)
            mount("-o", "remount,ro,bind", data)
        else:
            layout.data.chmod(0o500)
        with pytest.raises(BrokerError, match=f"{data} can't be written") as raised:
            control.start(layout, free_port(), ignore)
        assert raised.value.code == "files_unusable"
        assert "chown -R" in raised.value.hint
        if os.geteuid() == 0:
            mount("-o", "remount,rw,bind", data)
        else:
            layout.data.chmod(0o700)
        assert values_after_a_start(layout, used) == [b"x"]
        control.stop(layout, ignore)
