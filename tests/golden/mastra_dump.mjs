// Makes `mastra.otlp.jsonl` (its OTel exporter) and `mastra.trace.json` (getTrace): an agent on a canned model.
//
// In a folder where `@mastra/core`, `@mastra/observability`, `@mastra/otel-exporter`, `zod`,
// `@opentelemetry/sdk-trace-base` and `@opentelemetry/otlp-transformer` are installed:
// `cp .../tests/golden/mastra_dump.mjs . && node mastra_dump.mjs .../tests/golden`

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { MastraStorageExporter, Observability } from '@mastra/observability';
import { OtelExporter } from '@mastra/otel-exporter';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { z } from 'zod';

const folder = process.argv[2] ?? '.';

// -- what the model says ----------------------------------------------------------------------------------------------

const call = (id, toolName, input) => ({ type: 'tool-call', toolCallId: id, toolName, input: JSON.stringify(input) });
const text = words => ({ type: 'text', text: words });
const usage = (inputTokens, outputTokens) => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
  cachedInputTokens: 8,
  reasoningTokens: 4,
});

const SCRIPT = [
  {
    content: [call('call_1', 'findBook', { title: 'Momo' }), call('call_2', 'reserve', { title: 'Momo', apiKey: 'none' })],
    finishReason: 'tool-calls',
    usage: usage(60, 12),
  },
  {
    content: [{ type: 'reasoning', text: 'It cannot be reserved.' }, text('Momo is on shelf 7, yet nobody can reserve it.')],
    finishReason: 'stop',
    usage: usage(90, 16),
  },
  { content: [call('call_3', 'findBook', { title: 'Ronja' })], finishReason: 'tool-calls', usage: usage(120, 9) },
  { content: [text('Ronja is lent out.')], finishReason: 'stop', usage: usage(140, 6) },
];

let turn = 0;
function next() {
  const said = SCRIPT[turn++];
  return { ...said, warnings: [], response: { id: `resp_${turn}`, modelId: 'canned-1-2026', timestamp: new Date() } };
}

function pieces(said) {
  const parts = [{ type: 'stream-start', warnings: [] }, { type: 'response-metadata', ...said.response }];
  for (const [index, part] of said.content.entries()) {
    const id = `${index}`;
    if (part.type === 'tool-call') parts.push(part);
    else {
      parts.push({ type: `${part.type}-start`, id });
      for (const delta of part.text.split(/(?<= )/)) parts.push({ type: `${part.type}-delta`, id, delta });
      parts.push({ type: `${part.type}-end`, id });
    }
  }
  return [...parts, { type: 'finish', finishReason: said.finishReason, usage: said.usage }];
}

const model = {
  specificationVersion: 'v2',
  provider: 'canned.chat',
  modelId: 'canned-1',
  supportedUrls: {},
  doGenerate: async () => next(),
  doStream: async () => ({
    stream: new ReadableStream({
      start(controller) {
        for (const piece of pieces(next())) controller.enqueue(piece);
        controller.close();
      },
    }),
  }),
};

// -- the agent --------------------------------------------------------------------------------------------------------

const findBook = createTool({
  id: 'findBook',
  description: 'Look a book up in the catalogue.',
  inputSchema: z.object({ title: z.string() }),
  execute: async ({ title }) => (title === 'Momo' ? { shelf: 7, token: 'none' } : 'lent out'),
});
const reserve = createTool({
  id: 'reserve',
  description: 'Reserve a book.',
  inputSchema: z.object({ title: z.string(), apiKey: z.string() }),
  execute: async () => {
    throw new TypeError('reservations are closed');
  },
});
const librarian = new Agent({
  id: 'librarian',
  name: 'Librarian',
  instructions: 'You are a librarian.',
  model,
  tools: { findBook, reserve },
});

const lines = [];
const exporter = {
  export(spans, done) {
    for (const event of spans.flatMap(span => span.events)) delete event.attributes?.['exception.stacktrace']; // paths
    lines.push(new TextDecoder().decode(JsonTraceSerializer.serializeRequest(spans)));
    done({ code: 0 });
  },
  shutdown: async () => {},
};
// A provider must be named, though nothing is sent there.
const provider = { custom: { endpoint: 'http://127.0.0.1:9/', protocol: 'http/json' } };
const otel = new OtelExporter({ provider, exporter, signals: { logs: false } });
const storage = new InMemoryStore();
const observability = new Observability({
  configs: {
    default: {
      serviceName: 'library',
      exporters: [otel, new MastraStorageExporter({ storage })],
    },
  },
});
const mastra = new Mastra({ agents: { librarian }, storage, observability, logger: false });

const agent = mastra.getAgent('librarian');
const options = { modelSettings: { temperature: 0.2 }, tracingOptions: { metadata: { threadId: 'desk-7', userId: 'u-1' }, tags: ['library'] } };
const first = await agent.generate('Reserve Momo for me.', options);
const second = await agent.stream(
  [
    { role: 'user', content: 'Reserve Momo for me.' },
    { role: 'assistant', content: 'Momo is on shelf 7, yet nobody can reserve it.' },
    { role: 'user', content: 'And Ronja?' },
  ],
  options,
);
await second.consumeStream();
await otel.flush();
await observability.shutdown?.();

writeFileSync(join(folder, 'mastra.otlp.jsonl'), lines.map(line => `${line}\n`).join(''));
const store = (await storage.getStore?.('observability')) ?? storage;
const traces = [];
for (const traceId of [first.traceId, await second.traceId]) {
  const found = await store.getTrace({ traceId });
  for (const span of found?.spans ?? []) if (span.error) delete span.error.stack; // paths
  traces.push(found);
}
writeFileSync(join(folder, 'mastra.trace.json'), `${JSON.stringify(traces, null, 1)}\n`);
process.exit(0);
