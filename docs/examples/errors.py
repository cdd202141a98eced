# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the SDK raises: a wrong field, and a full server that says when to come back."""

import os
import time

import openai


def main() -> None:
    client = openai.OpenAI(
        base_url=os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1"),
        api_key=os.environ.get("TRITONE_API_KEY", "unused"),
        max_retries=0,  # the SDK would otherwise honour Retry-After by itself
    )
    try:
        ask(client, temperature=3)
    except openai.BadRequestError as error:
        print(f"field {error.param}: {error.message}")
    try:
        ask(client, temperature=0)
    except (openai.RateLimitError, openai.InternalServerError) as error:
        time.sleep(float(error.response.headers.get("retry-after", "1")))
        ask(client, temperature=0)


def ask(client: openai.OpenAI, *, temperature: float) -> None:
    """One short question."""
    answer = client.chat.completions.create(
        model="smollm2_chat",
        messages=[{"role": "user", "content": "Say hello."}],
        max_tokens=8,
        temperature=temperature,
    )
    print(answer.choices[0].message.content)


if __name__ == "__main__":
    main()
