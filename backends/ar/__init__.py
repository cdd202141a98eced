# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Autoregressive engine: scheduler, paged KV cache, runner, sampler."""
