// The Vercel AI SDK. The argument names the provider package: @ai-sdk/openai or @ai-sdk/openai-compatible.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";
import { catchError, DOWN_MODEL, serve, UNKNOWN_MODEL, WEATHER_TEXT } from "./harness.mjs";

const compatible = process.argv[2] === "openai-compatible";
const Order = z.object({ drink: z.string(), cups: z.number().int() });
const weather = tool({
  description: "Return the weather of a place.",
  inputSchema: z.object({ place: z.string() }),
  execute: async () => WEATHER_TEXT,
});

function connect(task, model = "newton", apiKey = task.token) {
  const baseURL = `${task.url}/v1`;
  if (!compatible) return createOpenAI({ baseURL, apiKey })(model);
  return createOpenAICompatible({ name: "newton", baseURL, apiKey, supportsStructuredOutputs: true })(model);
}

const ask = async (model, prompt, options = {}) => (await generateText({ model, prompt, ...options })).text;

await serve({
  chat: async (task) => ({ text: await ask(connect(task), task.say) }),

  stream: async (task) => {
    const chunks = [];
    for await (const text of streamText({ model: connect(task), prompt: task.say }).textStream) chunks.push(text);
    return { chunks };
  },

  tools: async (task) => {
    const options = { tools: { weather }, stopWhen: isStepCount(3), prompt: task.say };
    const reply = await generateText({ model: connect(task), ...options });
    const calls = reply.steps.flatMap((step) => step.toolCalls.map((call) => [call.toolName, call.input]));
    return { calls, text: reply.text };
  },

  structured: async (task) => {
    const output = Output.object({ schema: Order });
    return { parsed: (await generateText({ model: connect(task), prompt: task.say, output })).output };
  },

  images: async (task) => {
    const data = Buffer.from(task.image.split(",")[1], "base64");
    const content = [{ type: "text", text: task.say }, { type: "file", data, mediaType: "image/png" }];
    const messages = [{ role: "user", content }];
    return { text: (await generateText({ model: connect(task), messages })).text };
  },

  remembers: async (task) => ({
    texts: [await ask(connect(task), task.fact), await ask(connect(task), task.question)],
  }),

  errors: async (task) => {
    const once = { maxRetries: 0 };
    return {
      token: await catchError(() => ask(connect(task, "newton", "nwt_wrong"), task.say, once)),
      model: await catchError(() => ask(connect(task, UNKNOWN_MODEL), task.say, once)),
      down: await catchError(() => ask(connect(task, DOWN_MODEL), task.say, once)),
    };
  },

  private: async (task) => {
    const providerOptions = compatible ? { newton: { store: false } } : { openai: { store: false } };
    return { text: await ask(connect(task), task.say, { providerOptions }) };
  },
});
