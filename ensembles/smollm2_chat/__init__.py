# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The chat pipeline: an orchestrator in front of one thinker."""
