"""JSON objects that end in a checksum of themselves, so that a changed byte is noticed wherever they are read.

`{"step": 1, "checksum": "8c736521"}`: the CRC-32 of the bytes before the comma. Objects without one, written
by other programs, are read as they are.
"""

import json
import re
import zlib
from typing import Any

_SEAL = re.compile(rb',\s*"checksum": "([0-9a-f]{8})"\s*\}\s*\Z')


def seal(text: str) -> bytes:
    """Append the checksum to the text of an object that is not empty, as its last entry."""
    body, _, rest = text.rpartition("}")
    body = body.rstrip()
    indent = "\n  " if "\n" in body else " "
    data = body.encode()
    closing = "\n}" if "\n" in body else "}"
    return data + f',{indent}"checksum": "{zlib.crc32(data):08x}"{closing}{rest}'.encode()


def unseal(data: bytes) -> dict[str, Any]:
    """Read an object; ValueError says what is wrong with whatever else the bytes may hold."""
    found = _SEAL.search(data[-64:])
    if found is not None:
        body = data[: len(data) - len(data[-64:]) + found.start()]
        if f"{zlib.crc32(body):08x}".encode() != found.group(1):
            raise ValueError("its checksum does not match: bytes were changed after it was written")
        data = body + b"}"
    try:
        value = json.loads(data)
        json.dumps(value, ensure_ascii=False).encode() if b"\\ud" in data.lower() else None  # halves of a letter
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__}, not an object")
    return value
