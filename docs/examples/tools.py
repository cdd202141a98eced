# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Tool calling with a model whose chat template takes tools, such as Qwen3 (SmolLM2's takes none: 400)."""

import json
import os

from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam

WEATHER: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def main() -> None:
    client = OpenAI(
        base_url=os.environ.get("TRITONE_URL", "http://127.0.0.1:8091/v1"),
        api_key=os.environ.get("TRITONE_API_KEY", "unused"),
    )
    answer = client.chat.completions.create(
        model="qwen3",  # tritone serve smollm2_chat --checkpoint hub:Qwen/Qwen3-0.6B --name qwen3
        messages=[{"role": "user", "content": "Do I need an umbrella in Oslo?"}],
        tools=[WEATHER],
        max_tokens=512,
    )
    for call in answer.choices[0].message.tool_calls or []:
        if call.type == "function":
            print(call.function.name, json.loads(call.function.arguments))


if __name__ == "__main__":
    main()
