"""Builds, prints, parses and packs many objects, some on threads."""

import json
import re
import threading
import zlib

rows = [{"name": "x" * (n % 300), "list": list(range(n % 40))} for n in range(8000)]
text = json.dumps(rows)
assert json.loads(text) == rows
more = re.sub(r"(\d+)", lambda found: str(int(found[1]) + 1), text)
found = []



def pack(part):
    """Notes how long a text is that was packed and unpacked."""
    found.append(len(zlib.decompress(zlib.compress(part.encode()))))


threads = [threading.Thread(target=pack, args=(more[n::8],)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(more), sum(found))
