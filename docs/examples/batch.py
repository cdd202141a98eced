# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Several conversations in one request: one choice for each, in their order."""

import os

import httpx


def main() -> None:
    base_url = os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1")
    key = os.environ.get("TRITONE_API_KEY", "unused")
    answer = httpx.post(
        f"{base_url}/chat/completions/batch",
        headers={"Authorization": f"Bearer {key}"},
        json={
            "model": "smollm2_chat",
            "messages": [
                [{"role": "user", "content": "What is the capital of France?"}],
                [{"role": "user", "content": "What is the capital of Italy?"}],
            ],
            "temperature": 0,
            "max_tokens": 32,
        },
        timeout=120,
    )
    answer.raise_for_status()
    for choice in answer.json()["choices"]:
        print(choice["index"], choice["message"]["content"])


if __name__ == "__main__":
    main()
