# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: each measures the product and what it is compared with in one run, sides alternating."""
