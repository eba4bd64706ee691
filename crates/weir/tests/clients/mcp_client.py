"""Calls the tools of `weir mcp` with the official client library of the protocol.

Usage: mcp_client.py WEIR FOLDER. The folder has root/ with a layout, jobs and observations, and a
file outside of it. Prints "ok NAME" for each check.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

WEIR, FOLDER = sys.argv[1], sys.argv[2]
ROOT = os.path.join(FOLDER, "root")
TOOLS = ["diagnose", "simulate", "plan", "fit", "tune", "compare", "catalog", "prices"]


def server(*more):
    return StdioServerParameters(command=WEIR, args=["mcp", "--root", ROOT, *more], cwd="/")


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


def field(result, snake, camel):
    """Returns a field under the name of either generation of the library."""
    return getattr(result, snake) if hasattr(result, snake) else getattr(result, camel)


def is_error(result):
    return field(result, "is_error", "isError")


def structured(result):
    return field(result, "structured_content", "structuredContent")


def check(name, is_fine, what=""):
    print(f"ok {name}" if is_fine else f"FAILED {name}: {what}", flush=True)


async def tools(session):
    listed = (await session.list_tools()).tools
    check("list", sorted(tool.name for tool in listed) == sorted(TOOLS), listed)
    schemas = [field(tool, "input_schema", "inputSchema") for tool in listed]
    check("schemas", all(own["type"] == "object" and own["properties"] for own in schemas))
    hints = [field(tool.annotations, "read_only_hint", "readOnlyHint") for tool in listed]
    check("read-only", all(hints), hints)


async def answers(session):
    async def call(name, /, **arguments):
        return await session.call_tool(name, arguments)

    told = await call("catalog", what="show", name="P30", output="json")
    check("catalog", not is_error(told) and "5,000" in text(told) or "5000" in text(told), text(told))
    told = await call("prices", name="P30", region="westeurope")
    check("prices", not is_error(told) and "westeurope" in text(told), text(told))
    told = await call("plan", size="4TiB", iops=16000, edition="azure-premium-2015", output="json")
    check("plan", not is_error(told) and structured(told)["is_met"] is True, text(told))
    told = await call("simulate", layout="layout.toml", jobs=["held.fio"], runtime="5s", output="json")
    iops = structured(told)["jobs"][0]["read"]["iops"]
    check("simulate", abs(iops - 500) < 25, iops)
    inline = {"layout_text": open(os.path.join(ROOT, "layout.toml")).read()}
    inline["job_text"] = open(os.path.join(ROOT, "held.fio")).read()
    told = await call("simulate", runtime="5s", output="json", **inline)
    check("simulate text", structured(told)["jobs"][0]["read"]["iops"] == iops, text(told))
    told = await call("diagnose", observations=["held.weirobs"])
    check("diagnose", not is_error(told) and "the answer is no" in text(told), text(told))
    need = '[data]\nsize = "100 GiB"\niops = 900\nrequest = "8 KiB"\n'
    told = await call("fit", layout="layout.toml", load={"need_text": need}, output="json")
    check("fit", structured(told)["answer"] == "no", text(told))
    night = {"also_texts": [need.replace("900", "100")]}
    told = await call("fit", layout="layout.toml", load={"need_text": need}, output="json", **night)
    check("fit also", {own["need"] for own in structured(told)["roles"]} == {"peak", "also-1"}, text(told))
    told = await call("tune", layout="layout.toml", load={"need_text": need}, output="json")
    check("tune", structured(told)["is_met"] and len(structured(told)["steps"]) == 1, text(told))
    told = await call("compare", sides=["held.weirobs", "calm.weirobs"], output="json")
    check("compare", structured(told)["is_worse"] is True, text(told))
    told = await asyncio.gather(*(call("catalog", what="editions") for _ in range(8)))
    check("eight at once", all("azure-now" in text(own) for own in told))


async def refusals(session):
    async def refused(name, expect, tool, /, **arguments):
        result = await session.call_tool(tool, arguments)
        check(name, is_error(result) and expect in text(result), text(result))

    outside = os.path.join(FOLDER, "secret")
    missing = "does not exist in the folders"
    for name, path in [("absolute", outside), ("dots", "../secret"), ("link", "link.weirobs")]:
        await refused(f"outside: {name}", missing, "diagnose", observations=[path])
    await refused("outside: layout", missing, "simulate", layout=outside, jobs=["held.fio"])
    included = "[a]\ninclude /etc/passwd\n"
    await refused("include", "included files", "simulate", layout="layout.toml", job_text=included)
    await refused("environment", "environment", "simulate", layout="layout.toml", job_text="[${HOME}]")
    await refused("missing field", "observations", "diagnose")
    await refused("unknown field", "html", "diagnose", observations=["held.weirobs"], html="x")
    await refused("wrong type", "invalid type", "plan", size=4)
    await refused("wrong value", "iops", "simulate", layout_text="iops = 1", jobs=["held.fio"])
    await refused("option as name", "--help", "catalog", what="show", name="--help")
    await refused("oversized arguments", "at most", "simulate", layout_text="#" * 300_000, job_text="")
    try:
        await session.call_tool("shell", {"command": "id"})
        check("unknown tool", False, "it was called")
    except Exception as error:
        check("unknown tool", "there is no tool" in str(error), error)
    # The server still answers.
    result = await session.call_tool("catalog", {"what": "editions"})
    check("alive", not is_error(result), text(result))


async def limits():
    async with stdio_client(server("--max-memory", "4MiB")) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            result = await session.call_tool("prices", {"name": "P30"})
            check("memory", is_error(result) and "--max-memory" in text(result), text(result))
    async with stdio_client(server("--timeout", "300ms", "--max-output", "1KiB")) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            long = {"layout": "layout.toml", "jobs": ["held.fio"], "runtime": "1000000h"}
            result = await session.call_tool("simulate", long)
            check("time", is_error(result) and "no answer within 0.3 s" in text(result), text(result))
            result = await session.call_tool("catalog", {"what": "hosts", "name": "azure-now"})
            check("output", is_error(result), text(result))


async def raw():
    """Sends lines that no library would send."""
    process = await asyncio.create_subprocess_exec(
        WEIR, "mcp", "--root", ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    def send(message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        process.stdin.write(line + b"\n")

    async def answer(number):
        while True:
            message = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
            if message.get("id") == number:
                return message

    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    told = await answer(1)
    check("initialize", told["result"]["serverInfo"]["name"] == "weir", told)
    send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    send(b"this is no JSON")
    send(b"\xff\xfe")
    send(b"x" * (5 << 20))
    send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "catalog", "arguments": [1]}})
    send({"jsonrpc": "2.0", "id": 3, "method": "no/such/method"})
    send({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "catalog", "arguments": {"what": "editions"}}})
    told = await answer(4)
    check("after broken lines", told["result"]["isError"] is False, told)
    process.stdin.close()
    check("ends with its client", await asyncio.wait_for(process.wait(), 60) == 0)


async def main():
    async with stdio_client(server()) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            await tools(session)
            await answers(session)
            await refusals(session)
    await limits()
    await raw()


asyncio.run(main())
