// OpenAI's package for Node.js, chat completions.
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { catchError, DOWN_MODEL, serve, UNKNOWN_MODEL, WEATHER_TEXT } from "./harness.mjs";

const Order = z.object({ drink: z.string(), cups: z.number().int() });
const parameters = {
  type: "object",
  properties: { place: { type: "string" } },
  required: ["place"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "weather", parameters } }];

const connect = (task, options = {}) => new OpenAI({ baseURL: `${task.url}/v1`, apiKey: task.token, ...options });

async function ask(client, content, options = {}) {
  const messages = [{ role: "user", content }];
  const reply = await client.chat.completions.create({ model: "newton", messages, ...options });
  return reply.choices[0].message.content;
}

await serve({
  chat: async (task) => ({ text: await ask(connect(task), task.say) }),

  stream: async (task) => {
    const messages = [{ role: "user", content: task.say }];
    const chunks = [];
    for await (const chunk of await connect(task).chat.completions.create({ model: "newton", messages, stream: true })) {
      if (chunk.choices[0]?.delta.content) chunks.push(chunk.choices[0].delta.content);
    }
    return { chunks };
  },

  tools: async (task) => {
    const client = connect(task);
    const messages = [{ role: "user", content: task.say }];
    const first = await client.chat.completions.create({ model: "newton", messages, tools });
    const { message } = first.choices[0];
    const results = message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: WEATHER_TEXT }));
    const all = [...messages, message, ...results];
    const second = await client.chat.completions.create({ model: "newton", messages: all, tools });
    const calls = message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    return { calls, text: second.choices[0].message.content };
  },

  structured: async (task) => {
    const messages = [{ role: "user", content: task.say }];
    const response_format = zodResponseFormat(Order, "order");
    const reply = await connect(task).chat.completions.parse({ model: "newton", messages, response_format });
    return { parsed: reply.choices[0].message.parsed };
  },

  images: async (task) => {
    const parts = [{ type: "text", text: task.say }, { type: "image_url", image_url: { url: task.image } }];
    return { text: await ask(connect(task), parts) };
  },

  remembers: async (task) => ({
    texts: [await ask(connect(task), task.fact), await ask(connect(task), task.question)],
  }),

  errors: async (task) => {
    const client = connect(task, { maxRetries: 0 });
    const wrong = connect(task, { apiKey: "nwt_wrong", maxRetries: 0 });
    return {
      token: await catchError(() => ask(wrong, task.say)),
      model: await catchError(() => ask(client, task.say, { model: UNKNOWN_MODEL })),
      down: await catchError(() => ask(client, task.say, { model: DOWN_MODEL })),
    };
  },

  private: async (task) => ({ text: await ask(connect(task), task.say, { store: false }) }),
});
