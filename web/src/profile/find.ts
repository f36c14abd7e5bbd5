// Which events a reader means: by a text, by a source line, by a piece of advice.

import type { Advice } from "./data";
import type { Profile } from "./profile";

// Events whose opcode, operands, source line, engine or queue contains all words of a text.
export function matching(profile: Profile, text: string): Uint32Array {
  const { saved } = profile;
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return new Uint32Array();
  // Names are few and events are many: ask each name once.
  const holds = (names: string[]) => words.map((word) => names.map((name) => name.toLowerCase().includes(word)));
  const operations = holds(saved.operations.map(([opcode, operands]) => `${opcode} ${operands}`));
  const sources = holds(saved.sources);
  const engines = holds(saved.engines);
  const queues = holds(saved.queues);
  const { operation, source, engine, transfer } = saved.events;
  const every = words.map((_, w) => w);
  return profile.withTransfers(profile.eventsWhere((e) => {
    const queue = transfer[e]! > 0 ? saved.transfers.queue[transfer[e]! - 1]! : -1;
    return every.every((w) => operations[w]![operation[e]!] || sources[w]![source[e]!] || engines[w]![engine[e]!] ||
                              (queue >= 0 && queues[w]![queue]));
  }));
}

export function ofSource(profile: Profile, sources: string[]): Uint32Array {
  const wanted = profile.saved.sources.map((source) => sources.includes(source));
  const { source } = profile.saved.events;
  return profile.withTransfers(profile.eventsWhere((e) => wanted[source[e]!]!));
}

export function ofAdvice(profile: Profile, advice: Advice): Uint32Array {
  if (advice.events === undefined || advice.events.length === 0) return ofSource(profile, advice.sources);
  const events: number[] = [];
  for (const [first, count] of advice.events) for (let e = first; e < first + count; e++) events.push(e);
  return profile.withTransfers(events);
}

export function ofCriticalPath(profile: Profile): Uint32Array {
  return profile.withTransfers(profile.critical);
}
