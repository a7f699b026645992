"""Runs alone inside a box: what can be reached from there, and how one learns that it cannot."""

import json
import os
import socket
import stat
import sys
import urllib.request
from pathlib import Path

TARGETS = {
    "bridge of the host": ("172.17.0.1", 22),
    "bridge of the host, engine": ("172.17.0.1", 2375),
    "another box": ("172.17.0.2", 8080),
    "metadata": ("169.254.169.254", 80),
    "metadata, AWS IPv6": ("fd00:ec2::254", 80),
    "private network": ("10.0.0.1", 443),
    "internet": ("1.1.1.1", 443),
    "internet IPv6": ("2606:4700:4700::1111", 443),
    "stub": ("127.0.0.1", int(sys.argv[1])),
    "local IPv6": ("::1", 8080),
}
NAMES = ("example.org", "secret.tunnel.example.org", "host.docker.internal", "metadata.google.internal")
QUERY = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06tunnel\x07example\x03org\x00\x00\x10\x00\x01"
LOOKED_AT = ("/run", "/var", "/dev", "/tmp", "/home", "/workspace", "/mnt", "/srv")


def outcome(attempt):
    try:
        said = attempt()
    except OSError as error:
        return {"reached": False, "said": repr(error)}
    return {"reached": True, "said": str(said)}


def connect(address):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as line:
        line.settimeout(5)
        line.connect(address)


def ask_dns(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(5)
        line.connect((server, 53))
        line.send(QUERY)
        return line.recv(512)


def gateway():
    with urllib.request.urlopen("http://127.0.0.1:8080/openai/v1/models", timeout=120) as answer:
        return answer.status


def sockets():
    for folder in LOOKED_AT:
        for parent, _, names in os.walk(folder):
            paths = [Path(parent, name) for name in names]
            yield from (str(path) for path in paths if stat.S_ISSOCK(path.lstat().st_mode))


closed = {name: outcome(lambda target=target: connect(target)) for name, target in TARGETS.items()}
closed |= {f"name {name}": outcome(lambda name=name: socket.getaddrinfo(name, 443)) for name in NAMES}
closed |= {f"DNS {server}": outcome(lambda server=server: ask_dns(server)) for server in ("8.8.8.8", "127.0.0.11")}
seen = {
    "gateway": outcome(gateway),
    "closed": closed,
    "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
    "door": sorted(path.name for path in Path("/run/door").iterdir()),
    "sockets": sorted(sockets()),
    "mounts": Path("/proc/self/mountinfo").read_text(),
    "uid": os.getuid(),
    "environ": dict(os.environ),
}
Path("/workspace/probe.json").write_text(json.dumps(seen))
