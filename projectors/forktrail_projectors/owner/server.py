"""Serves an owned graph on a Unix socket: one thread does the talking, others the work.

A client that hangs up has its question interrupted, again and again until the engine listens. One that doesn't read its
answer fills its own buffer, and is left after a while; nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import suppress
from functools import partial

from forktrail_projectors.owner.asker import Asker
from forktrail_projectors.owner.frames import HEADER, REQUEST_BYTES_MAX, Frame, answer_bytes, body_length, frame_of
from forktrail_projectors.owner.messages import PROTOCOL, STILL_AT_IT_SECONDS, OwnerGone, error_json
from forktrail_projectors.owner.owned import Owned
from forktrail_projectors.owner.worker import Worker
from forktrail_schemas.errors import ForktrailError, GraphBusy

CLIENTS_MAX = 64
# A client that reads nothing for so long is left.
UNREAD_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_STOP_SECONDS = 1.0

_Work = asyncio.Future[bytes | None]


class Server:
    """Answers on a listening socket, and on connections that this process makes to itself."""

    def __init__(self, owned: Owned, listener: socket.socket | None, *, stays: bool = True) -> None:
        """Begin to serve.

        Args:
            listener: None where there is no socket for others.
            stays: what clients are told of how long this process means to own the graph.
        """
        self._owned = owned
        self._greeting: Frame = {"forktrail": PROTOCOL, "run": owned.run, "process": os.getpid(), "stays": stays}
        self._listener = listener
        self._loop = asyncio.new_event_loop()
        self._clients: set[asyncio.Task[None]] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="forktrail-owner", daemon=True)
        self._thread.start()

    def dial(self) -> socket.socket:
        """A connection from this process.

        Raises:
            OwnerGone: it serves no more.
        """
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._loop.call_soon_threadsafe(self._welcome, there)
        except RuntimeError as error:  # the loop is closed
            here.close()
            there.close()
            raise OwnerGone from error
        return here

    def close(self) -> None:
        """Hang up on every client and interrupt what is done for them."""
        if not self._closing:  # a second stop would end the loop before its clients are left
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        if self._listener is not None:
            self._listener.setblocking(False)
            accepting = self._loop.create_task(self._accept(self._listener))
        try:
            self._loop.run_forever()
        finally:
            if self._listener is not None:
                accepting.cancel()
            for task in self._clients:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._clients, return_exceptions=True))
            self._loop.close()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(listener)
            except OSError:  # out of file handles: some will be given back
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                self._welcome(connection)

    def _welcome(self, connection: socket.socket) -> None:
        task = self._loop.create_task(self._serve(connection))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        asker = Asker(self._owned)
        worker = Worker[bytes | None](self._loop)
        try:
            if len(self._clients) > CLIENTS_MAX:
                raise GraphBusy(f"process {os.getpid()} answers {CLIENTS_MAX} others already", hint="ask again soon")
            await self._send(writer, answer_bytes(self._greeting))
            while True:
                frames = asker.answer(await self._request(reader))
                while frame := await self._next_frame(worker.do(partial(next, frames, None)), asker, reader, writer):
                    await self._send(writer, frame)
        except ForktrailError as error:
            with suppress(OSError, TimeoutError):
                await self._send(writer, answer_bytes({"error": error_json(error)}))
        except (OSError, EOFError, TimeoutError, OwnerGone):
            pass  # the client left, or is left
        finally:
            asker.leave()
            worker.close()
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> Frame:
        length, kind = body_length(await reader.readexactly(HEADER.size), REQUEST_BYTES_MAX)
        return frame_of(await reader.readexactly(length), kind)

    async def _next_frame(
        self, work: _Work, asker: Asker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """A frame that is being made; meanwhile the client is told so, and noticed if it hangs up."""
        looks = 0
        while not work.done():
            await asyncio.wait({work}, timeout=_LOOK_SECONDS)
            looks += 1
            if reader.at_eof():
                asker.leave()
            elif looks % round(STILL_AT_IT_SECONDS / _LOOK_SECONDS) == 0:
                writer.write(answer_bytes({}))
        return await work

    async def _send(self, writer: asyncio.StreamWriter, frame: bytes) -> None:
        writer.write(frame)
        async with asyncio.timeout(UNREAD_SECONDS):  # `wait_for` loses a cancellation that comes as it ends
            await writer.drain()
