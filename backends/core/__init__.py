# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What every stage shares: requests, chunks, cancellation, sending and metrics. Imports no torch."""
