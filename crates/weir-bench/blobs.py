#!/usr/bin/env python3
"""Weir's page blobs beside Azurite, in turn: 8 KiB random Get Blob and Put Page at 16
connections on a blob without limits, driven by wrk. Prints medians, the spread, the ratio
round by round, and the memory of both; then what listing 10,000 blobs and asking for the
page ranges of a sparse 1 TiB blob take.

    cargo build --release
    python3 crates/weir-bench/blobs.py --azurite PATH/node_modules/.bin/azurite-blob [--rounds 5]

With --fio in place of --azurite: Put Page in files beside fio, which writes as many 8 KiB blocks at a time to
a file of the same folder, each followed by fdatasync.

Needs azure-storage-blob for Python and wrk (Debian), and Azurite (npm) or fio (Debian).
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

from azure.storage.blob import BlobServiceClient, generate_account_sas

SIZE = 64 << 20
BLOCK = 8192
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

LUA = """
local body = string.rep("x", %(block)d)
request = function()
  local offset = math.random(0, %(last)d) * %(block)d
  local headers = {["x-ms-version"] = "2021-12-02"}
  headers["x-ms-range"] = "bytes=" .. offset .. "-" .. (offset + %(block)d - 1)
  if "%(what)s" == "Get Blob" then return wrk.format("GET", nil, headers) end
  headers["x-ms-page-write"] = "update"
  return wrk.format("PUT", nil, headers, body)
end
done = function(summary) print("refused " .. summary.errors.status) end
"""


class Peer:
    """A server under test."""

    def __init__(self, name, port, command):
        self.name, self.port = name, port
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.url = f"http://127.0.0.1:{port}/devstoreaccount1"
        self.client = BlobServiceClient(self.url, credential=KEY, retry_total=20)
        for _ in range(100):
            try:
                self.client.get_service_properties()
                break
            except Exception:
                time.sleep(0.1)

    def prepare(self):
        container = self.client.get_container_client("bench")
        container.create_container()
        blob = container.get_blob_client("blob")
        blob.create_page_blob(SIZE)
        for offset in range(0, SIZE, 4 << 20):
            blob.upload_page(os.urandom(4 << 20), offset, 4 << 20)

    def run(self, what, seconds):
        """Requests a second, and CPU seconds a million requests."""
        sas = generate_account_sas(
            "devstoreaccount1", KEY, "o", "rw", datetime.now(timezone.utc) + timedelta(hours=2)
        )
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(LUA % {"block": BLOCK, "last": SIZE // BLOCK - 1, "what": what})
            script.flush()
            comp = "&comp=page" if what == "Put Page" else ""
            before = self.cpu()
            out = subprocess.run(
                ["wrk", "-t1", "-c16", f"-d{seconds}", "-s", script.name,
                 f"{self.url}/bench/blob?{sas}{comp}"],
                check=True, capture_output=True, text=True,
            ).stdout
        assert "refused 0" in out, out
        rate = float(re.search(r"Requests/sec: +([0-9.]+)", out).group(1))
        return rate, (self.cpu() - before) / (rate * seconds) * 1e6

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024

    def stop(self):
        self.process.kill()
        self.process.wait()


def weir(folder, name, port, args):
    layout = os.path.join(folder, "layout.toml")
    with open(layout, "w", encoding="ascii") as file:
        file.write("[host]\nunlimited = true\n[blob]\n")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return Peer(name, port, [
        os.path.join(root, "target/release/weir"), "serve", layout,
        "--blob", f"127.0.0.1:{port}", "--nbd", f"unix:{folder}/{name}.nbd",
        "--control", f"{folder}/{name}.control", *args,
    ])


def fio(folder, seconds):
    """Durable writes a second by 16 jobs on a file of the size of the blob."""
    out = subprocess.run(
        ["fio", "--name=durable", f"--filename={folder}/fio", f"--size={SIZE}", "--rw=randwrite",
         f"--bs={BLOCK}", "--ioengine=psync", "--fdatasync=1", "--numjobs=16", "--thread",
         "--time_based", f"--runtime={seconds}", "--group_reporting", "--output-format=json"],
        check=True, capture_output=True, text=True,
    ).stdout
    return json.loads(out)["jobs"][0]["write"]["iops"]


def durable(args):
    """Put Page in files beside fio, in turn."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        own = weir(folder, "weir-files", 11003, ["--data", f"{folder}/data"])
        own.prepare()
        fio(folder, 1)
        rounds = [(own.run("Put Page", args.seconds)[0], fio(folder, args.seconds))
                  for _ in range(args.rounds)]
        own.stop()
    ratios = sorted(a / b for a, b in rounds)
    for name, at in (("weir", 0), ("fio", 1)):
        rates = sorted(pair[at] for pair in rounds)
        print(f"| {name} | {statistics.median(rates):,.0f} | {rates[0]:,.0f} | {rates[-1]:,.0f} |")
    print(f"ratio: median {statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}")


def main():
    parser = argparse.ArgumentParser()
    peer = parser.add_mutually_exclusive_group(required=True)
    peer.add_argument("--azurite")
    peer.add_argument("--fio", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--folder", help="where files are kept; a temporary folder if left out")
    args = parser.parse_args()
    if args.fio:
        durable(args)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        azurite = [args.azurite, "--skipApiVersionCheck", "--silent"]
        pairs = [
            ("in memory",
             weir(folder, "weir", 11001, []),
             Peer("azurite", 11002, [*azurite, "--inMemoryPersistence", "--blobPort", "11002"])),
            ("in files",
             weir(folder, "weir-files", 11003, ["--data", f"{folder}/data"]),
             Peer("azurite-files", 11004,
                  [*azurite, "--location", f"{folder}/azurite", "--blobPort", "11004"])),
        ]
        for where, own, other in pairs:
            own.prepare()
            other.prepare()
            for what in ("Get Blob", "Put Page"):
                rounds = [(own.run(what, args.seconds), other.run(what, args.seconds))
                          for _ in range(args.rounds)]
                ratios = sorted(a[0] / b[0] for a, b in rounds)
                for name, results in (("weir", [a for a, _ in rounds]), ("azurite", [b for _, b in rounds])):
                    rates = sorted(rate for rate, _ in results)
                    cpu = statistics.median(cpu for _, cpu in results)
                    print(f"| {where} | {what} | {name} | {statistics.median(rates):,.0f} | "
                          f"{rates[0]:,.0f} | {rates[-1]:,.0f} | {cpu:.1f} |")
                print(f"ratio {where}, {what}: median {statistics.median(ratios):.1f}, "
                      f"{ratios[0]:.1f} to {ratios[-1]:.1f}")
            print(f"memory at its most, {where}: weir {own.memory():.0f} MiB, "
                  f"azurite {other.memory():.0f} MiB, of which {SIZE >> 20} MiB are the blob's bytes "
                  "where they are in memory", flush=True)
        own = pairs[0][1]
        many = own.client.create_container("many")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: many.upload_blob(f"blob-{n:05}", b"x"), range(10_000)))
        started = time.monotonic()
        count = sum(1 for _ in many.list_blobs())
        print(f"listing {count:,} blobs with the SDK: {time.monotonic() - started:.2f} s")
        sparse = own.client.get_blob_client("bench", "sparse")
        sparse.create_page_blob(1 << 40)
        for n in range(100):
            sparse.upload_page(b"y" * 512, (n * 10_007 + 1) << 20, 512)
        started = time.monotonic()
        ranges = list(sparse.list_page_ranges())
        print(f"{len(ranges)} page ranges of a sparse blob of 1 TiB: "
              f"{(time.monotonic() - started) * 1e3:.1f} ms")
        for _, own, other in pairs:
            own.stop()
            other.stop()


main()
