# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tritone.gateway`: serve, with settings from the environment (docs/ENV.md)."""

from tritone.gateway.server import main

if __name__ == "__main__":
    main()
