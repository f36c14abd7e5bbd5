// A quantity over time that changes in steps: its mean and its peak over any stretch, in time that grows with the
// logarithm of the steps.

import type { Counter } from "./data";

const BLOCK = 64;

export class Steps {
  readonly name: string;
  readonly core: number;
  readonly unit: string;
  readonly limit: number;
  readonly peak: number;
  readonly top: number;  // of the scale: the limit, or less where the peak would hardly show
  private readonly time: Float64Array;
  private readonly value: Float64Array;
  private readonly sum: Float64Array;    // integral up to each step
  private readonly blocks: Float64Array;  // peak of each block of steps

  constructor(counter: Counter) {
    this.name = counter.name;
    this.core = counter.core;
    this.unit = counter.unit;
    const count = counter.time.length;
    this.time = new Float64Array(count);
    this.value = Float64Array.from(counter.value);
    this.sum = new Float64Array(count);
    this.blocks = new Float64Array(Math.ceil(count / BLOCK));
    let time = 0;
    for (let i = 0; i < count; i++) {
      time += counter.time[i]!;
      this.time[i] = time;
      if (i > 0) this.sum[i] = this.sum[i - 1]! + this.value[i - 1]! * (time - this.time[i - 1]!);
      const block = Math.floor(i / BLOCK);
      this.blocks[block] = Math.max(this.blocks[block]!, this.value[i]!);
    }
    this.peak = this.blocks.reduce((a, b) => Math.max(a, b), 0);
    this.limit = counter.limit > 0 ? counter.limit : this.peak;
    this.top = Math.max(this.peak, Math.min(this.limit, counter.unit === "1" ? Infinity : 3 * this.peak)) || 1;
  }

  // The step that holds at `time`; -1 before the first.
  private index(time: number): number {
    let low = 0;
    let high = this.time.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle]! <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  private integral(time: number): number {
    const i = this.index(time);
    return i < 0 ? 0 : this.sum[i]! + this.value[i]! * (time - this.time[i]!);
  }

  at(time: number): number {
    const i = this.index(time);
    return i < 0 ? 0 : this.value[i]!;
  }

  mean(from: number, to: number): number {
    return to > from ? (this.integral(to) - this.integral(from)) / (to - from) : this.at(from);
  }

  max(from: number, to: number): number {
    const last = this.index(to);
    let peak = 0;
    for (let i = Math.max(0, this.index(from)); i <= last;) {
      if (i % BLOCK === 0 && i + BLOCK - 1 <= last) {
        peak = Math.max(peak, this.blocks[i / BLOCK]!);
        i += BLOCK;
      } else {
        peak = Math.max(peak, this.value[i]!);
        i++;
      }
    }
    return peak;
  }
}
