// A profile as the page works with it. Its items are what has a place on the timeline: event e is item e, transfer t is
// item events + t. Times in ns.

import type { Saved } from "./data";

export class Profile {
  readonly events: number;
  readonly items: number;
  readonly start: Float64Array;
  readonly busyEnd: Float64Array;  // the engine is free; of a transfer: its last byte moved
  readonly end: Float64Array;      // the result can be read; of a transfer: the consumer knows
  readonly core: Uint8Array;
  readonly total: number;  // until nothing happens any more
  readonly critical: Uint32Array;  // events in time order
  private readonly shades: Uint16Array;  // by operation
  private waiting: Map<number, number[]> | null = null;

  constructor(readonly saved: Saved) {
    const { events, transfers } = saved;
    this.events = events.start.length;
    this.items = this.events + transfers.start.length;
    this.start = new Float64Array(this.items);
    this.busyEnd = new Float64Array(this.items);
    this.end = new Float64Array(this.items);
    this.core = new Uint8Array(this.items);
    let time = 0;
    let core = 0;
    for (let e = 0; e < this.events; e++) {
      while (core + 1 < saved.core_from.length - 1 && e >= saved.core_from[core + 1]!) core++;
      time += events.start[e]!;
      this.start[e] = time;
      this.busyEnd[e] = time + events.busy[e]!;
      this.end[e] = this.busyEnd[e]! + events.latency[e]!;
      this.core[e] = core;
    }
    time = 0;
    let event = 0;
    this.transferEvent = new Uint32Array(transfers.start.length);
    for (let t = 0; t < transfers.start.length; t++) {
      const item = this.events + t;
      time += transfers.start[t]!;
      event += transfers.event[t]!;
      this.transferEvent[t] = event;
      this.start[item] = time;
      this.busyEnd[item] = time + transfers.length[t]!;
      this.end[item] = this.busyEnd[item]! + transfers.arrival[t]!;
      this.core[item] = this.core[event]!;
    }
    this.shades = new Uint16Array(saved.operations.length);
    const opcodes = saved.engines.map(() => [] as string[]);
    const seen = new Set<number>();
    events.operation.forEach((operation, e) => {
      if (seen.has(operation)) return;
      seen.add(operation);
      const known = opcodes[events.engine[e]!]!;
      const opcode = saved.operations[operation]![0];
      if (!known.includes(opcode)) known.push(opcode);
      this.shades[operation] = known.indexOf(opcode);
    });
    this.critical = Uint32Array.from(saved.critical_events);
    for (let i = 1; i < this.critical.length; i++) this.critical[i]! += this.critical[i - 1]!;
    let last = this.duration;
    for (const end of this.end) last = Math.max(last, end);
    this.total = last;
  }

  private readonly transferEvent: Uint32Array;

  // What the profile says the kernel takes.
  get duration(): number {
    return 1e9 * (this.saved.figures.total_time ?? 0);
  }

  // A transfer's number, or -1 of an event.
  transfer(item: number): number {
    return item < this.events ? -1 : item - this.events;
  }

  // The event that an item is, or that triggered the transfer it is.
  event(item: number): number {
    return item < this.events ? item : this.transferEvent[item - this.events]!;
  }

  opcode(item: number): string {
    return this.saved.operations[this.saved.events.operation[this.event(item)]!]![0];
  }

  // Which of its engine's opcodes an event is, in the order they first ran: its shade. Transfers are all alike.
  shade(item: number): number {
    return item < this.events ? this.shades[this.saved.events.operation[item]!]! : 0;
  }

  operands(item: number): string {
    return this.saved.operations[this.saved.events.operation[this.event(item)]!]![1];
  }

  flops(item: number): number {
    return item < this.events ? this.saved.operations[this.saved.events.operation[item]!]![2] ?? 0 : 0;
  }

  source(item: number): string {
    return this.saved.sources[this.saved.events.source[this.event(item)]!] ?? "";
  }

  place(item: number): string {
    const transfer = this.transfer(item);
    return transfer < 0 ? engineName(this.saved.engines[this.saved.events.engine[item]!]!)
                        : this.saved.queues[this.saved.transfers.queue[transfer]!]!;
  }

  // What an item waited for: a transfer for its trigger, an event for the data (and then for the transfer that brought
  // it), the place or the engine of another.
  cause(item: number): { name: string; item: number } | null {
    if (item >= this.events) return { name: "trigger", item: this.event(item) };
    const { by, cause, transfer } = this.saved.events;
    const name = this.saved.causes[cause[item]!]!;
    if (by[item] === 0) return name === "nothing" ? null : { name, item: -1 };
    const event = item - by[item]!;
    const moved = transfer[event]! - 1;
    return { name, item: moved >= 0 && name !== "engine" ? this.events + moved : event };
  }

  // What waited for an item.
  effects(item: number): number[] {
    if (this.waiting === null) {
      this.waiting = new Map();
      for (let other = 0; other < this.items; other++) {
        const cause = this.cause(other);
        if (cause === null || cause.item < 0) continue;
        const list = this.waiting.get(cause.item);
        if (list === undefined) this.waiting.set(cause.item, [other]);
        else list.push(other);
      }
    }
    return this.waiting.get(item) ?? [];
  }

  // The items of these events: themselves and the transfers they triggered.
  withTransfers(events: Iterable<number>): Uint32Array {
    const items: number[] = [];
    for (const event of events) {
      items.push(event);
      const transfer = this.saved.events.transfer[event]! - 1;
      if (transfer >= 0) items.push(this.events + transfer);
    }
    return Uint32Array.from(items);
  }

  *eventsWhere(holds: (event: number) => boolean): Generator<number> {
    for (let e = 0; e < this.events; e++) if (holds(e)) yield e;
  }
}

const ENGINE_NAMES: Record<string, string> = { tensor: "Tensor", vector: "Vector", scalar: "Scalar", gpsimd: "GpSimd",
                                              sync: "Sync", dma: "DMA" };
export function engineName(engine: string): string {
  return ENGINE_NAMES[engine] ?? engine;
}
