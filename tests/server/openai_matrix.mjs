// SPDX-FileCopyrightText: 2026 The Tritone authors
// SPDX-License-Identifier: Apache-2.0
// The unmodified OpenAI Node SDK against the real server. Prints one line per check; exits 1 at the first that fails.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [baseURL, nodeModules] = process.argv.slice(2);
const OpenAI = createRequire(nodeModules + "/")("openai").OpenAI;
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0, timeout: 60_000 });
const model = "smollm2_chat";
const messages = [{ role: "user", content: "What is the capital of France?" }];

async function check(name, work) {
  await work();
  console.log(`ok ${name}`);
}

for (const n of [1, 2]) {
  for (const stop of [undefined, " France"]) {
    for (const logprobs of [false, true]) {
      await check(`chat n=${n} stop=${stop} logprobs=${logprobs}`, async () => {
        const body = { model, messages, n, stop, logprobs, seed: 3, temperature: 0.7, max_tokens: 16 };
        const whole = await client.chat.completions.create(body);
        const texts = Array(n).fill("");
        const reasons = Array(n).fill(null);
        let usage = null;
        const stream = await client.chat.completions.create({
          ...body, stream: true, stream_options: { include_usage: true },
        });
        for await (const chunk of stream) {
          usage = chunk.usage ?? usage;
          for (const choice of chunk.choices) {
            texts[choice.index] += choice.delta.content ?? "";
            reasons[choice.index] = choice.finish_reason ?? reasons[choice.index];
          }
        }
        assert.deepEqual(texts, whole.choices.map((choice) => choice.message.content));
        assert.deepEqual(reasons, whole.choices.map((choice) => choice.finish_reason));
        assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
        if (logprobs) assert.ok(whole.choices[0].logprobs.content.length > 0);
      });
    }
  }
}

await check("stream helper", async () => {
  const runner = client.chat.completions.stream({ model, messages, temperature: 0, max_tokens: 32 });
  const final = await runner.finalChatCompletion();
  assert.match(final.choices[0].message.content, /Paris/);
  assert.equal(final.choices[0].finish_reason, "stop");
});

await check("completions", async () => {
  const answer = await client.completions.create({ model, prompt: "The capital of France is", max_tokens: 8, temperature: 0 });
  assert.match(answer.choices[0].text, /Paris/);
});

await check("models", async () => {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.ok(ids.includes(model));
});

await check("errors", async () => {
  await assert.rejects(client.chat.completions.create({ model, messages, temperature: 9 }), (error) => {
    assert.equal(error.status, 400);
    assert.match(String(error.param), /temperature/);
    return true;
  });
  await assert.rejects(client.chat.completions.create({ model: "nope", messages }), OpenAI.NotFoundError);
});

await check("abort", async () => {
  const stream = await client.chat.completions.create({ model, messages, max_tokens: 2000, stream: true });
  for await (const chunk of stream) {
    assert.ok(chunk.id);
    stream.controller.abort();
  }
});
