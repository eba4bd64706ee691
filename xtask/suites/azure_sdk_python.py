"""Points the storage tests of the Azure SDK for Python at one server: `pytest -p azure_sdk_python`.

The tests take accounts, recordings and a base class from `devtools_testutils`, which is in no package. It
builds URLs as `https://ACCOUNT.blob.core.windows.net` and talks to a proxy that records requests. This plugin
stands in for the names that the tests import. Tests run live, without a proxy, and the tests stay unchanged.

| variable | holds |
|---|---|
| `WEIR_SUITE_URL` | the URL of the account, which ends in its name |
| `WEIR_SUITE_KEY` | its key |
| `WEIR_SUITE_RESULTS` | the file for the results, one JSON object per line |
"""

import functools
import inspect
import json
import math
import os
import random
import sys
import time
import types
import zlib

import pytest

URL = os.environ["WEIR_SUITE_URL"]
ACCOUNT = URL.rsplit("/", 1)[1]
KEY = types.SimpleNamespace(secret=os.environ["WEIR_SUITE_KEY"])


class Accounts:
    """A decorator that passes each account and key that a test can ask for. All are the same account."""

    def __init__(self, _service, options=None, **names):
        self.given = {name: KEY if name.endswith("_key") else ACCOUNT for name in names}

    def __call__(self, test):
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def run(case, **kwargs):
                await test(case, **self.given, **kwargs)

        else:

            @functools.wraps(test)
            def run(case, **kwargs):
                test(case, **self.given, **kwargs)

        return run


class Case:
    """The base class of the tests."""

    is_live = True

    def account_url(self, _account, _service):
        return URL

    def get_credential(self, _client):
        """Returns a credential with a token of Entra ID that no server accepts."""
        return types.SimpleNamespace(get_token=lambda _scope: types.SimpleNamespace(token="none"))

    def get_resource_name(self, prefix):
        """Returns a name that is the same throughout a test, and another one in each test."""
        return f"{prefix}{zlib.crc32(os.environ['PYTEST_CURRENT_TEST'].encode()):08x}"

    def get_random_bytes(self, size):
        """Returns bytes without repetition, so that misplaced content shows. Recordings have the letter a."""
        return random.randbytes(size)

    def generate_sas(self, generate, *args, **kwargs):
        return generate(*args, **kwargs)

    def get_datetime_variable(self, _variables, _name, value):
        return value

    def sleep(self, seconds):
        time.sleep(seconds)

    def assertNamedItemInContainer(self, items, name):
        assert name in [item.name for item in items]

    def assert_upload_progress(self, size, chunk, progress, unknown_size=False):
        """Checks that there is a report after each chunk, with the total."""
        chunks = math.ceil(size / chunk)
        ends = [min((index + 1) * chunk, size) for index in range(chunks)]
        total = None if unknown_size else size
        assert sorted(progress) == [(end, total) for end in ends]


class AsyncCase(Case):
    """The base class of the asynchronous tests."""

    def get_credential(self, client, is_async):
        credential = super().get_credential(client)

        async def get_token(scope):
            return credential.get_token(scope)

        return types.SimpleNamespace(get_token=get_token)


def module(name, **content):
    """Registers a module under this name."""
    made = sys.modules[name] = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(content)
    return made


base = module(
    "devtools_testutils",
    EnvironmentVariableLoader=Accounts,
    EnvironmentVariableOptions=dict,
    recorded_by_proxy=lambda test: test,
)
# Sanitizers change recordings.
base.__getattr__ = lambda name: lambda *_args, **_kwargs: None
module("devtools_testutils.aio", recorded_by_proxy_async=lambda test: test)
module("devtools_testutils.fake_credentials", STORAGE_ACCOUNT_FAKE_KEY="none")
module("devtools_testutils.storage", StorageRecordedTestCase=Case)
module("devtools_testutils.storage.aio", AsyncStorageRecordedTestCase=AsyncCase)


@pytest.fixture(scope="session")
def test_proxy():
    """The recording proxy, which `conftest.py` asks for."""


def pytest_configure(config):
    for name in ["live_test_only", "playback_test_only"]:
        config.addinivalue_line("markers", f"{name}: a mark of the SDK's tests")


def pytest_runtest_setup(item):
    if item.get_closest_marker("playback_test_only"):
        pytest.skip("the test runs from a recording only")


def pytest_runtest_logreport(report):
    """Appends the result of a test. One that fails before or after its own code has failed."""
    if report.when != "call" and report.passed:
        return
    # The first line that is marked is the statement of the test, and the last one may be of the SDK.
    statements = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith(">")]
    failure = getattr(report.longrepr, "reprcrash", None)
    words = ": ".join([*statements[:1], failure.message if failure else ""])
    result = {"test": report.nodeid.rsplit("::", 1)[1], "outcome": report.outcome, "words": words}
    with open(os.environ["WEIR_SUITE_RESULTS"], "a", encoding="utf-8") as file:
        print(json.dumps(result), file=file)
