"""The lab's services over real HTTP, the file that says where they are, and `forktrail lab serve` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from forktrail_lab.exchange.targets import Targets, host_and_port, load_targets, origin_of, save_targets
from forktrail_lab.registry.file import load_registry, parse_registry, shipped_registry_path
from forktrail_lab.registry.model import Registry
from forktrail_lab.services import Lab, answer_for, is_loopback
from forktrail_schemas.errors import ExitCode, InvalidInput, NotFound

NORTHWIND = load_registry(shipped_registry_path()).registry
MARKER = {"x-route-context": "internal-mesh"}
CLERK = {"authorization": "Bearer synthetic-tenant-alpha-clerk"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.start(NORTHWIND) as running:
        yield running


def ask(lab: Lab, revision: str, asset: str, path: str, method: str = "GET", **options: Any) -> httpx.Response:
    origin = origin_of(lab.targets(), revision, asset)
    with httpx.Client(trust_env=False) as client:
        return client.request(method, origin + path, **options)


def scripted(*answers: dict[str, Any]) -> Registry:
    """The shipped registry with the gateway's r1 answering by this script alone."""
    document = json.loads(shipped_registry_path().read_bytes())
    document["services"] = {"gateway": {"r1": list(answers)}}
    return parse_registry(json.dumps(document).encode(), source="scripted.json")


def test_each_asset_has_an_origin_of_its_own_in_each_revision(lab: Lab) -> None:
    targets = lab.targets().targets
    assert {revision: set(assets) for revision, assets in targets.items()} == {
        revision: {"gateway", "invoice-api", "export", "audit"} for revision in ("r1", "r2")
    }
    origins = [origin for assets in targets.values() for origin in assets.values()]
    assert len(set(origins)) == 8
    assert all(origin.startswith("http://127.0.0.1:") for origin in origins)


@pytest.mark.parametrize(
    ("asset", "path", "headers", "r1", "r2"),
    [
        ("gateway", "/internal/routes", {}, 401, 401),
        ("gateway", "/internal/routes", MARKER, 200, 401),
        ("gateway", "/internal/routes", {"x-route-context": "other"}, 401, 401),
        ("invoice-api", "/v1/invoices/inv-beta-2001", CLERK | MARKER, 200, 403),
        ("invoice-api", "/v1/invoices/inv-beta-2001", CLERK, 401, 403),
        ("invoice-api", "/v1/invoices/inv-beta-2001", {}, 401, 401),
        ("audit", "/v1/trails/tenant-beta", CLERK | MARKER, 503, 403),
        ("audit", "/v1/trails/tenant-beta/more", CLERK | MARKER, 404, 404),
        ("export", "/", {}, 404, 404),
    ],
)
def test_a_service_answers_by_its_revision_and_says_which_it_is(
    lab: Lab, asset: str, path: str, headers: dict[str, str], r1: int, r2: int
) -> None:
    answers = [ask(lab, revision, asset, path, headers=headers) for revision in ("r1", "r2")]
    assert [answer.status_code for answer in answers] == [r1, r2]
    assert [answer.headers["x-service-revision"] for answer in answers] == ["r1", "r2"]


def test_a_payout_is_changed_only_under_the_version_that_was_read(lab: Lab) -> None:
    path = "/v1/invoices/inv-beta-2001/payout-account"
    bodies = ['{"version": 7}', '{"version": 6}']
    answers = [ask(lab, "r1", "invoice-api", path, "PUT", headers=CLERK | MARKER, content=body) for body in bodies]
    assert [answer.status_code for answer in answers] == [200, 409]


def test_the_first_answer_that_matches_wins_and_none_is_404() -> None:
    registry = scripted(
        {"when": {"method": "POST", "path": "/a/{any}/c", "body_contains": "x"}, "respond": {"status": 201}},
        {"when": {"method": "POST", "path": "/a/{any}/c"}, "respond": {"status": 202}},
        {"when": {"method": "POST", "path": "/a/b/c"}, "respond": {"status": 203}},
        {"when": {"method": "GET", "path": "/q?a=1"}, "respond": {"status": 204}},
        {"when": {"method": "GET", "path": "/q.x"}, "respond": {"status": 205}},
    )
    answers = registry.services["gateway"]["r1"]
    asked = [
        ("POST", "/a/b/c", b"x"),
        ("POST", "/a/b/c?q", b""),
        ("POST", "/a/b/d/c", b""),
        ("POST", "/a//c", b""),
        ("GET", "/a/b/c", b""),
        ("GET", "/q?a=1", b""),
        ("GET", "/q?a=2", b""),
        ("GET", "/qzx", b""),
    ]
    statuses = [answer_for(answers, method, path, {}, body).status for method, path, body in asked]
    assert statuses == [201, 202, 404, 404, 404, 204, 404, 404]


def test_a_service_tells_what_it_was_asked_without_counting_the_question() -> None:
    with Lab.start(scripted()) as lab:
        ask(lab, "r1", "gateway", "/a?b=1")
        ask(lab, "r1", "gateway", "/c", "POST", content=b"x")
        ask(lab, "r1", "gateway", "/__lab__/requests")
        document = ask(lab, "r1", "gateway", "/__lab__/requests").json()
    assert document == {"count": 2, "requests": [["GET", "/a?b=1"], ["POST", "/c"]]}


def test_a_body_of_unknown_length_is_refused_and_the_service_lives_on(lab: Lab) -> None:
    refused = ask(lab, "r1", "export", "/v1/exports", "POST", content=iter([b"x"]))
    assert (refused.status_code, ask(lab, "r1", "export", "/v1/exports", "POST").status_code) == (400, 401)


def test_a_head_request_is_answered_without_a_body() -> None:
    answer = {"when": {"method": "HEAD", "path": "/"}, "respond": {"status": 200, "text": "hello"}}
    with Lab.start(scripted(answer)) as lab:
        response = ask(lab, "r1", "gateway", "/", "HEAD")
    assert (response.status_code, response.headers["content-length"], response.content) == (200, "5", b"")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_a_lab_beyond_loopback_is_refused_unless_asked_for(host: str) -> None:
    with pytest.raises(InvalidInput, match="not loopback"):
        Lab.start(NORTHWIND, host=host)


def test_loopback_is_told_by_address() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4


def test_a_registry_without_services_has_nothing_to_serve() -> None:
    document = json.loads(shipped_registry_path().read_bytes())
    del document["services"]
    with pytest.raises(InvalidInput, match="scripts no services"):
        Lab.start(parse_registry(json.dumps(document).encode(), source="bare.json"))


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_a_targets_file_written_by_hand_needs_no_pid(tmp_path: Path) -> None:
    document = {"format": "forktrail.targets/1", "targets": {"r1": {"door": "https://staging.example/"}}}
    targets = load_targets(write(tmp_path / "targets.json", document))
    assert origin_of(targets, "r1", "door") == "https://staging.example"


def test_a_targets_file_is_read_back_as_it_was_saved_and_leaves_no_other_file(tmp_path: Path) -> None:
    targets = Targets(format="forktrail.targets/1", pid=7, targets={"r1": {"door": "http://[::1]:80"}})
    path = tmp_path / "new" / "targets.json"
    assert save_targets(path, targets) == path.read_bytes()
    assert load_targets(path) == targets
    assert list(path.parent.iterdir()) == [path]


def test_an_unknown_revision_or_asset_is_not_found_and_the_known_ones_are_named() -> None:
    targets = Targets(format="forktrail.targets/1", targets={"r1": {"door": "http://127.0.0.1:1"}})
    with pytest.raises(NotFound, match=r"no revision 'r2'.*r1"):
        origin_of(targets, "r2", "door")
    with pytest.raises(NotFound, match=r"no asset 'gate' in revision 'r1'.*door"):
        origin_of(targets, "r1", "gate")


@pytest.mark.parametrize(
    "origin",
    [
        "127.0.0.1:80",
        "ftp://host",
        "http://",
        "http://user@host",
        "http://host/path",
        "http://host?x=1",
        "http://host:99999",
        "",
    ],
)
def test_an_address_that_is_not_an_origin_is_refused_with_its_place(tmp_path: Path, origin: str) -> None:
    document = {"format": "forktrail.targets/1", "targets": {"r1": {"door": origin}}}
    with pytest.raises(InvalidInput, match=r"\$\.targets\.r1\.door"):
        load_targets(write(tmp_path / "targets.json", document))


def test_a_missing_file_is_not_found_and_other_content_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="lab serve"):
        load_targets(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="not a targets file"):
        load_targets(write(tmp_path / "a.json", {"format": "other", "targets": {}}))
    with pytest.raises(InvalidInput, match="can't be read"):
        load_targets(tmp_path)


def test_host_and_port_names_the_port_of_the_scheme() -> None:
    urls = ["http://h/", "https://h/", "http://h:81/", "http://[::1]:8/"]
    assert [host_and_port(httpx.URL(url)) for url in urls] == ["h:80", "h:443", "h:81", "[::1]:8"]


@contextmanager
def serving(home: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`forktrail lab serve` as a process, once it says that all are listening; it is ended with SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "forktrail_lab", "lab", "serve", *options],
        env=os.environ | {"FORKTRAIL_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def lines_until_ready(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("targets in"):
            return lines
    raise AssertionError("the lab ended before it was ready")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_a_signal_and_takes_its_targets_file_away(tmp_path: Path, number: int) -> None:
    path = tmp_path / "lab" / "targets.json"
    with serving(tmp_path) as process:
        lines = lines_until_ready(process)
        targets = load_targets(path)
        assert targets.pid == process.pid
        assert len(lines) == 9
        origin = origin_of(targets, "r2", "gateway")
        assert f"r2  gateway              {origin}" in lines
        assert httpx.get(f"{origin}/internal/routes", headers=MARKER, trust_env=False).status_code == 401
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert list(path.parent.iterdir()) == []


def test_the_command_leaves_a_targets_file_that_is_no_longer_its_own(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    with serving(tmp_path, "--targets", str(path)) as first:
        lines_until_ready(first)
        with serving(tmp_path, "--targets", str(path)) as second:
            lines_until_ready(second)
            first.send_signal(signal.SIGTERM)
            assert first.wait(timeout=10) == 0
            assert load_targets(path).pid == second.pid
            second.send_signal(signal.SIGTERM)
            second.wait(timeout=10)
            assert second.stderr is not None
            assert f"process {first.pid}, which is still running" in second.stderr.read()
    assert not path.exists()


def test_the_command_says_in_one_line_what_is_wrong_with_a_registry(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.json", {"format": "forktrail.registry/1"})
    ended = subprocess.run(
        [sys.executable, "-m", "forktrail_lab", "lab", "serve", "--registry", str(bad)],
        env=os.environ | {"FORKTRAIL_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == ExitCode.USAGE
    assert ended.stderr.count("\n") == 1
    assert "bad.json: $.name: Field required" in ended.stderr
