# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Tritone's own sampling fields travel in `extra_body`; the SDK puts them at the top level of the request."""

import os

from openai import OpenAI


def main() -> None:
    client = OpenAI(
        base_url=os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1"),
        api_key=os.environ.get("TRITONE_API_KEY", "unused"),
    )
    answer = client.chat.completions.create(
        model="smollm2_chat",
        messages=[{"role": "user", "content": "Name a colour."}],
        max_tokens=16,
        n=3,
        seed=7,
        extra_body={"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "min_tokens": 2},
    )
    for choice in answer.choices:
        print(choice.index, choice.finish_reason, choice.message.content)


if __name__ == "__main__":
    main()
