# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What every route works with, built once per application."""

from __future__ import annotations

from typing import NamedTuple

from tritone.gateway.admission import Admission
from tritone.gateway.catalog import Catalog
from tritone.gateway.metrics import GatewayMetrics
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.transport import Transport


class Services(NamedTuple):
    """The parts of one gateway."""

    settings: GatewaySettings
    transport: Transport
    catalog: Catalog
    admission: Admission
    metrics: GatewayMetrics
