# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One media reader with its decoder process for the tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tritone.gateway.media.limits import DecoderSettings
from tritone.gateway.media.reader import MediaReader

# One process, so that a test can ask for the memory of the job it has just run.
ONE_WORKER = DecoderSettings(num_workers=1, start_timeout_s=100, job_timeout_s=100)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader() -> AsyncIterator[MediaReader]:
    media = MediaReader(decoder=ONE_WORKER)
    yield media
    await media.close()
