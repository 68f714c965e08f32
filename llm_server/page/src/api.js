// The server's API: its models, and replies as they come.
import { EventSourceParserStream } from "eventsource-parser/stream";
import { apiKey } from "./settings.js";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const key = apiKey();
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer. Is `mote serve` still running?");
  }
  if (!response.ok) throw new ApiError(response.status, await errorText(response));
  return response;
}

async function errorText(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The server answered ${response.status} ${response.statusText}`;
  }
}

export async function fetchModels() {
  return (await (await call("v1/models")).json()).data;
}

/** Yields the chunks of a reply. Errors: ApiError; AbortError when `signal` says so. */
export async function* chunks(body, signal) {
  const response = await call("v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal });
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (value.data === "[DONE]") return;
      const chunk = JSON.parse(value.data);
      if (chunk.error) throw new ApiError(response.status, chunk.error.message);
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError(0, "The connection broke before the reply was complete.");
  } finally {
    reader.cancel().catch(() => {});
  }
  throw new ApiError(0, "The connection ended before the reply did.");
}
