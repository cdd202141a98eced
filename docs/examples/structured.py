# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""An answer that fits a JSON schema, unless `max_tokens` cuts it off."""

import json
import os

from openai import OpenAI

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def main() -> None:
    client = OpenAI(
        base_url=os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1"),
        api_key=os.environ.get("TRITONE_API_KEY", "unused"),
    )
    answer = client.chat.completions.create(
        model="smollm2_chat",
        messages=[{"role": "user", "content": "Invent a person."}],
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}},
        temperature=0,
        max_tokens=128,
    )
    choice = answer.choices[0]
    if choice.finish_reason == "stop":
        print(json.loads(choice.message.content or ""))


if __name__ == "__main__":
    main()
