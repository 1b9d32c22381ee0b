"""Avro's binary encoding and fingerprint, written out from the specification and nothing else.

Source: Apache Avro 1.12 specification, "Binary Encoding" and "Schema Fingerprints".
"""

from __future__ import annotations

_EMPTY_FINGERPRINT = 0xC15D213AA4D7A795


def long(value: int) -> bytes:
    """A long: zig-zag, then seven bits a byte, lowest first, the top bit set on all but the last."""
    zigzag = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def string(text: str) -> bytes:
    """A string: its length in bytes as a long, then its UTF-8."""
    data = text.encode()
    return long(len(data)) + data


def crc_64_avro(data: bytes) -> int:
    """The Rabin fingerprint of the specification's Java example."""
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = value >> 1 ^ (_EMPTY_FINGERPRINT if value & 1 else 0)
        table.append(value)
    result = _EMPTY_FINGERPRINT
    for byte in data:
        result = result >> 8 ^ table[(result ^ byte) & 0xFF]
    return result
