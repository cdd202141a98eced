# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Text completion of two prompts at once, with the log probability of every token."""

import os

from openai import OpenAI


def main() -> None:
    client = OpenAI(
        base_url=os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1"),
        api_key=os.environ.get("TRITONE_API_KEY", "unused"),
    )
    answer = client.completions.create(
        model="smollm2_chat",
        prompt=["The sun rises in the", "Water boils at"],
        temperature=0,
        max_tokens=8,
        stop=["."],
        logprobs=3,
    )
    for choice in answer.choices:
        print(repr(choice.text))
        if choice.logprobs is not None:
            print(list(zip(choice.logprobs.tokens or [], choice.logprobs.token_logprobs or [], strict=True)))


if __name__ == "__main__":
    main()
