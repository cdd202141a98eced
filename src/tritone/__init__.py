# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Tritone: omni-modal models served on NVIDIA Triton Inference Server."""
