// Makes `vercel.otlp.jsonl` (AI SDK 5) or `vercel_otel.otlp.jsonl` (7): an agent on a canned model, traced by the SDK.
//
// In a folder where `ai@5` or `ai@7 @ai-sdk/otel`, `zod`, `@opentelemetry/api`, `@opentelemetry/sdk-trace-base`,
// `@opentelemetry/context-async-hooks` and `@opentelemetry/otlp-transformer` are installed:
// `cp .../tests/golden/vercel_dump.mjs . && node vercel_dump.mjs > .../tests/golden/vercel.otlp.jsonl`

import { createRequire } from 'node:module';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import * as ai from 'ai';
import * as test from 'ai/test';
import { z } from 'zod';

const version = Number(createRequire(import.meta.url)('ai/package.json').version.split('.')[0]);
const Model = version >= 7 ? test.MockLanguageModelV4 : test.MockLanguageModelV2;

// -- what the model says ----------------------------------------------------------------------------------------------

const count = (input, output) =>
  version >= 7
    ? {
        inputTokens: { total: input, noCache: input - 8, cacheRead: 8, cacheWrite: 0 },
        outputTokens: { total: output, text: output - 4, reasoning: 4 },
      }
    : { inputTokens: input, outputTokens: output, totalTokens: input + output, cachedInputTokens: 8, reasoningTokens: 4 };

const why = reason => (version >= 7 ? { unified: reason, raw: reason } : reason);
const call = (id, toolName, input) => ({ type: 'tool-call', toolCallId: id, toolName, input: JSON.stringify(input) });
const text = words => ({ type: 'text', text: words });

const SCRIPT = [
  {
    content: [
      { type: 'reasoning', text: 'Two titles to look up.' },
      text('Let me look.'),
      call('call_1', 'find_book', { title: 'Momo' }),
      call('call_2', 'reserve', { title: 'Momo' }),
    ],
    finishReason: why('tool-calls'),
    usage: count(60, 12),
  },
  { content: [text('Momo is on shelf 7, yet nobody can reserve it.')], finishReason: why('stop'), usage: count(90, 16) },
  { content: [call('call_3', 'find_book', { title: 'Ronja' })], finishReason: why('tool-calls'), usage: count(120, 9) },
  { content: [text('Ronja is lent out.')], finishReason: why('stop'), usage: count(140, 6) },
  new Error('the model is overloaded'),
];

let turn = 0;
function next() {
  const said = SCRIPT[turn++];
  if (said instanceof Error) throw said;
  const response = { id: `resp_${turn}`, modelId: 'canned-1-2026', timestamp: new Date(1795000000000) };
  return { ...said, warnings: [], response };
}

function* pieces(said) {
  yield { type: 'stream-start', warnings: [] };
  yield { type: 'response-metadata', ...said.response };
  for (const [index, part] of said.content.entries()) {
    if (part.type === 'text') {
      yield { type: 'text-start', id: `${index}` };
      for (const word of part.text.split(/(?<= )/)) yield { type: 'text-delta', id: `${index}`, delta: word };
      yield { type: 'text-end', id: `${index}` };
    } else yield part;
  }
  yield { type: 'finish', finishReason: said.finishReason, usage: said.usage };
}

const model = new Model({
  provider: 'canned.chat',
  modelId: 'canned-1',
  doGenerate: async () => next(),
  doStream: async () => ({ stream: test.convertArrayToReadableStream([...pieces(next())]) }),
});

// -- the agent --------------------------------------------------------------------------------------------------------

const title = z.object({ title: z.string() });
const tools = {
  find_book: ai.tool({
    description: 'Look a book up in the catalogue.',
    inputSchema: title,
    execute: async ({ title }) => (title === 'Momo' ? { shelf: 7 } : 'lent out'),
  }),
  reserve: ai.tool({
    description: 'Reserve a book.',
    inputSchema: title,
    execute: async () => {
      throw new TypeError('reservations are closed');
    },
  }),
};

const exporter = {
  export(spans, done) {
    const kept = spans.map(span => {
      for (const event of span.events) delete event.attributes?.['exception.stacktrace']; // paths
      return span;
    });
    process.stdout.write(new TextDecoder().decode(JsonTraceSerializer.serializeRequest(kept)) + '\n');
    done({ code: 0 });
  },
  shutdown: async () => {},
};
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

if (version >= 7) {
  const { OpenTelemetry } = await import('@ai-sdk/otel');
  ai.registerTelemetry(new OpenTelemetry());
}
const telemetry = { isEnabled: true, functionId: 'librarian', metadata: { sessionId: 'desk-7', userId: 'u-1' } };
const options = {
  model,
  tools,
  temperature: 0.2,
  maxRetries: 0,
  stopWhen: (ai.isStepCount ?? ai.stepCountIs)(4),
  [version >= 7 ? 'instructions' : 'system']: 'You are a librarian.',
  [version >= 7 ? 'telemetry' : 'experimental_telemetry']: telemetry,
};

const first = await ai.generateText({ ...options, prompt: 'Reserve Momo for me.' });
const messages = [
  { role: 'user', content: 'Reserve Momo for me.' },
  ...(first.responseMessages ?? first.response.messages),
  { role: 'user', content: 'And Ronja?' },
];
const second = ai.streamText({ ...options, messages });
await second.consumeStream();
await ai.generateText({ ...options, prompt: 'Hello?' }).catch(() => {});
await provider.forceFlush();
