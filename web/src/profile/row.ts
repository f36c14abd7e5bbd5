// One line of the timeline: intervals that follow each other, drawn at any zoom in time that grows with the pixels and the
// logarithm of the intervals, never with the intervals.
//
// Sums of all lengths before each interval tell how much of a pixel is busy by two binary searches, exactly. So where
// intervals are narrower than a pixel, the pixel's strength is its busy share, and a wide interval is one rectangle.

export class Row {
  private readonly before: Float64Array;  // busy time of all intervals before this one

  // Sorted, not overlapping.
  constructor(readonly item: Uint32Array, readonly start: Float64Array, readonly end: Float64Array) {
    this.before = new Float64Array(item.length + 1);
    for (let i = 0; i < item.length; i++) this.before[i + 1] = this.before[i]! + (end[i]! - start[i]!);
  }

  get length(): number {
    return this.item.length;
  }

  // The intervals whose items are in a set.
  only(holds: (item: number) => boolean): Row {
    const kept: number[] = [];
    for (let i = 0; i < this.length; i++) if (holds(this.item[i]!)) kept.push(i);
    return new Row(Uint32Array.from(kept, (i) => this.item[i]!), Float64Array.from(kept, (i) => this.start[i]!),
                   Float64Array.from(kept, (i) => this.end[i]!));
  }

  // The first interval, from `from` on, that ends after `time`.
  after(time: number, from = 0): number {
    // Neighbouring pixels ask for neighbouring intervals: gallop, then halve.
    let step = 1;
    let low = from;
    while (low < this.length && this.end[low]! <= time) {
      low += step;
      step *= 2;
    }
    if (step === 1) return low;
    let high = Math.min(low, this.length);
    low -= step / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle]! <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Busy time before `time`; `index` is after(time).
  private busyBefore(time: number, index: number): number {
    const part = index < this.length ? Math.max(0, time - this.start[index]!) : 0;
    return this.before[index]! + part;
  }

  busy(from: number, to: number, index = this.after(from)): number {
    return this.busyBefore(to, this.after(to, index)) - this.busyBefore(from, index);
  }

  // The interval nearest to `time`, if one is within `reach`; -1 otherwise.
  nearest(time: number, reach: number): number {
    const next = this.after(time);
    const gap = (i: number) => i < 0 || i >= this.length ? Infinity : Math.max(0, this.start[i]! - time, time - this.end[i]!);
    const best = gap(next - 1) < gap(next) ? next - 1 : next;
    return gap(best) <= reach ? best : -1;
  }

  // Calls `wide` with each interval of at least two pixels and `thin` with runs of pixels of equal busy eighths (1 to 8),
  // from left to right. `scale` is pixels a ns.
  walk(from: number, scale: number, width: number, wide: (x: number, w: number, index: number) => void,
       thin: (x: number, w: number, eighths: number) => void): void {
    let x = 0;
    let runStart = 0;
    let run = 0;
    const flush = (until: number) => {
      if (run > 0) thin(runStart, until - runStart, run);
      run = 0;
    };
    let covered = from;  // what a wide interval has drawn already
    let i = this.after(from);
    while (x < width && i < this.length) {
      const left = (this.start[i]! - from) * scale;
      const right = (this.end[i]! - from) * scale;
      if (left >= width) break;
      if (right - left >= 2) {
        flush(x);
        const x0 = Math.max(left, -2);
        wide(x0, Math.min(right, width + 2) - x0, i);
        covered = this.end[i]!;
        x = Math.max(x, Math.floor(right));
        i++;
        continue;
      }
      const column = Math.max(x, Math.floor(left));
      if (column > x) flush(x);
      const to = from + (column + 1) / scale;
      const begin = Math.max(from + column / scale, covered);
      const first = this.after(begin, i);
      const next = this.after(to, first);
      // An interval never vanishes: what is in a pixel at all shows as at least an eighth.
      const share = (this.busyBefore(to, next) - this.busyBefore(begin, first)) * scale;
      const eighths = Math.min(8, Math.max(first < next || (next < this.length && this.start[next]! < to) ? 1 : 0,
                                           Math.round(8 * share)));
      if (run !== eighths) {
        flush(column);
        runStart = column;
        run = eighths;
      }
      x = column + 1;
      i = next;
    }
    flush(Math.min(x, width));
  }
}

// Rows for items that may overlap: each goes to the first row that is free, in the order of their starts. Beyond `most`
// rows an interval is cut where it would overlap; and so is one that overlaps by a ns, as rounded times do.
export function rowsOf(items: Iterable<number>, start: ArrayLike<number>, end: ArrayLike<number>, most: number): Row[] {
  const sorted = Uint32Array.from(items);
  sorted.sort((a, b) => start[a]! - start[b]! || end[a]! - end[b]! || a - b);
  const lanes: { items: number[]; from: number[]; to: number[]; until: number }[] = [];
  for (const item of sorted) {
    const begins = start[item]!;
    let lane = lanes.find(({ until }) => until <= begins + 1);
    if (lane === undefined && lanes.length < most) {
      lane = { items: [], from: [], to: [], until: 0 };
      lanes.push(lane);
    }
    lane ??= lanes.reduce((first, other) => other.until < first.until ? other : first);
    const from = Math.max(begins, lane.until);
    lane.items.push(item);
    lane.from.push(from);
    lane.until = Math.max(from, end[item]!);
    lane.to.push(lane.until);
  }
  return lanes.map((lane) => new Row(Uint32Array.from(lane.items), Float64Array.from(lane.from), Float64Array.from(lane.to)));
}

// When any of several rows is busy.
export function union(rows: Row[]): Row | null {
  if (rows.length <= 1) return rows[0] ?? null;
  const at = rows.map(() => 0);
  const items: number[] = [];
  const from: number[] = [];
  const to: number[] = [];
  for (;;) {
    let next = -1;
    rows.forEach((row, r) => {
      if (at[r]! < row.length && (next < 0 || row.start[at[r]!]! < rows[next]!.start[at[next]!]!)) next = r;
    });
    if (next < 0) return new Row(Uint32Array.from(items), Float64Array.from(from), Float64Array.from(to));
    const row = rows[next]!;
    const i = at[next]!++;
    const last = to.length - 1;
    if (last >= 0 && row.start[i]! <= to[last]!) {
      to[last] = Math.max(to[last]!, row.end[i]!);
      continue;
    }
    items.push(row.item[i]!);
    from.push(row.start[i]!);
    to.push(row.end[i]!);
  }
}
