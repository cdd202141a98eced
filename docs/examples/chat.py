# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Stream a chat answer through the OpenAI SDK: `tritone serve` in one terminal, this in another."""

import os

from openai import OpenAI


def main() -> None:
    client = OpenAI(
        base_url=os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1"),
        api_key=os.environ.get("TRITONE_API_KEY", "unused"),
    )
    stream = client.chat.completions.create(
        model="smollm2_chat",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
        max_tokens=64,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
        if chunk.usage is not None:
            print(f"\n[{chunk.usage.completion_tokens} tokens]")


if __name__ == "__main__":
    main()
