"""`forktrail replay`: run every execution of a log again, and compare all it made."""

from __future__ import annotations

import argparse
from pathlib import Path

from forktrail_behaviors import certificate
from forktrail_behaviors.determinism import guard
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.replay import Divergence, Replayed, replay
from forktrail_lab.console.arguments import add_format, add_run, offset
from forktrail_lab.console.output import Format, counted, note, print_facts, print_lines
from forktrail_lab.console.pack_arguments import loaded
from forktrail_lab.files import read_file
from forktrail_producers.blobs import BlobStore
from forktrail_producers.keys import KeyStore
from forktrail_projectors import merkle
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.reader import LogReader
from forktrail_schemas.errors import Corruption, ExitCode, InvalidInput
from forktrail_schemas.settings import Settings

EXAMPLE = """  forktrail replay $RUN --pack mypack --strict
  forktrail replay $RUN --pack mypack --strict --certificate replay.json --key olga
  forktrail replay $RUN --check replay.json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare run, packs, way and certificate."""
    add_run(parser)
    parser.add_argument(
        "--pack",
        dest="packs",
        action="append",
        default=[],
        metavar="MODULE",
        help="Python module that holds PACK, or module:attribute; may be given several times",
    )
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--strict", action="store_true", help="stop at the first difference, with exit 5")
    way.add_argument("--permissive", action="store_true", help="go on, and tell every difference; exit 0")
    way.add_argument("--check", type=Path, metavar="FILE", help="hold a certificate against the run")
    parser.add_argument("--from", dest="start", type=offset, default=0, metavar="OFFSET", help="compare from here on")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write a signed statement of a strict replay")
    parser.add_argument("--key", metavar="NAME", help="key that signs the certificate")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Replay, or check a certificate; see the options for exit codes."""
    if arguments.check:
        return _check(arguments, settings)
    if not arguments.packs:
        raise InvalidInput("a replay needs the code that ran", hint="give its packs with --pack MODULE")
    if arguments.certificate and (not arguments.strict or arguments.start or not arguments.key):
        raise InvalidInput(
            "a certificate is of a strict replay of the whole log", hint="--strict --key NAME, no --from"
        )
    pack = loaded(arguments.packs)
    replayed, reactor = _replayed(arguments, settings, pack)
    _print(replayed, arguments)
    if replayed.divergences:
        return ExitCode.DIVERGENCE if arguments.strict else ExitCode.OK
    if replayed.changed:
        return ExitCode.DIFFERENCE
    if replayed.unwritten:
        missing = counted(replayed.unwritten, "event")
        note(f"{missing} that behaviors make not on the log yet: start a worker, and replay again")
    if arguments.certificate:
        if replayed.unwritten:
            fault = "a certificate is of a run whose behaviors have written all that they make"
            raise InvalidInput(fault, code="unwritten")
        key = KeyStore(settings.keys_dir).load(arguments.key)
        told = certificate.statement(arguments.run, replayed, reactor.registrations.all())
        arguments.certificate.write_text(certificate.signed(told, key) + "\n")
        note(f"certificate written to {arguments.certificate}, signed by {arguments.key!r}")
    return ExitCode.OK


def _replayed(arguments: argparse.Namespace, settings: Settings, pack: Pack) -> tuple[Replayed, Reactor]:
    with LogReader(settings.bootstrap_servers, arguments.run) as log:
        single = LogReader(settings.bootstrap_servers, arguments.run)
        blobs = BlobStore(str(settings.blobs_dir))
        graph = MirroredGraph(settings.graph_engine)
        reactor = Reactor(graph, log.topic_id, pack, blobs, single.record_at)
        guard.install()
        try:
            end = log.end()
            start = min(arguments.start, end)
            return replay(arguments.run, log, reactor, end, start=start, strict=arguments.strict), reactor
        finally:
            reactor.close()
            single.close()


def _print(replayed: Replayed, arguments: argparse.Namespace) -> None:
    changed = {f"{one.name} {one.version}": count for one, count in replayed.changed.items()}
    facts: dict[str, object] = {
        "run": arguments.run,
        "next_offset": replayed.next_offset,
        "executions": replayed.executions,
        "events": replayed.events,
        "compared": dict(sorted(replayed.compared.items())),
        "queries": replayed.queries,
        "unwritten": replayed.unwritten,
        "divergences": len(replayed.divergences),
        "changed": changed,
        "state_digest": replayed.state_digest,
        "log_root": replayed.log_root,
    }
    if arguments.format == Format.JSON:
        print_facts(facts | {"divergence": [vars(one) for one in replayed.divergences]}, arguments.format)
        return
    print_facts(facts, arguments.format)
    for name, count in changed.items():
        note(f"changed: {name} was registered with other code than is loaded; {counted(count, 'event')} left out")
    for one in replayed.divergences:
        print_lines(_told(one))


def _told(one: Divergence) -> list[str]:
    return [
        "",
        f"divergence at offset {one.offset}: {one.event} {one.event_id}, of {one.behavior}",
        f"  field     {one.field}",
        f"  expected  {one.expected}",
        f"  found     {one.found}",
    ]


def _check(arguments: argparse.Namespace, settings: Settings) -> int:
    """Hold a certificate against the log: its signature, the log's root, the state, versions."""
    raw = read_file(arguments.check, certificate.LENGTH_MAX, what="certificate")
    text = raw.decode("utf-8", "replace")
    graph, _ = fold_in_memory(settings, arguments.run)
    keys = {str(key.id): str(row["public_key"]) for key, row in graph.rows() if getattr(key, "table", "") == "Key"}  # type: ignore[union-attr]  # nodes alone
    found = certificate.read_certificate(text, keys)
    told = found.statement
    _, projector = fold_in_memory(settings, arguments.run, _end(settings, arguments.run, told["next_offset"]))
    root = merkle.root(projector.cursor.frontier)
    wrong = certificate.differences(told, arguments.run, root, projector.state_digest)
    if wrong:
        raise Corruption(
            f"the certificate isn't of this log: {wrong[0]}", code="certificate_mismatch", run=arguments.run
        )
    facts = {**told, "signed_by": found.key_id, "holds": True}
    print_facts(facts, arguments.format)
    return ExitCode.OK


def _end(settings: Settings, run: str, next_offset: int) -> int:
    with LogReader(settings.bootstrap_servers, run) as log:
        end = log.end()
    if next_offset > end:
        raise Corruption(
            f"the certificate is of {next_offset} records, the log has {end}", code="certificate_mismatch", run=run
        )
    return next_offset
