# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The shortest way to an answer: `make serve` in one terminal, this in another."""

from openai import OpenAI


def main() -> None:
    client = OpenAI(base_url="http://127.0.0.1:8091/v1", api_key="unused")
    stream = client.chat.completions.create(
        model="smollm2_chat",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        stream=True,
    )
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)


if __name__ == "__main__":
    main()
