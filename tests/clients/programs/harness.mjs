// Run the cells of one client: each line of standard input is a task, each line of standard output its result.
import { createInterface } from "node:readline";

export const UNKNOWN_MODEL = "gpt-9";
export const DOWN_MODEL = "down";
export const WEATHER_TEXT = "It rains in Porto.";

export async function serve(cells) {
  for await (const line of createInterface({ input: process.stdin })) {
    const task = JSON.parse(line);
    process.stdout.write(`${JSON.stringify(await cells[task.cell](task))}\n`);
  }
}

// Return class, HTTP status and message of the error that an action raises.
export async function catchError(action) {
  try {
    await action();
  } catch (error) {
    const name = error.constructor.name.startsWith("_") ? error.name : error.constructor.name;
    return { class: name, status: error.status ?? error.statusCode ?? null, message: error.message };
  }
  throw new Error("no error was raised");
}
