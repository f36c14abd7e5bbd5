// The stretch of time on screen, in ns. Everything that shows time follows it.

export class View {
  from: number;
  to: number;
  private readonly listeners: (() => void)[] = [];

  // Shows all of `total` and never less than `least` ns.
  constructor(readonly total: number, private readonly least = 8) {
    this.from = 0;
    this.to = total;
  }

  get length(): number {
    return this.to - this.from;
  }

  follow(listener: () => void): void {
    this.listeners.push(listener);
  }

  set(from: number, to: number): void {
    const length = Math.min(this.total, Math.max(this.least, to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(this.total - length, middle - length / 2));
    this.to = this.from + length;
    for (const listener of this.listeners) listener();
  }

  all(): void {
    this.set(0, this.total);
  }

  // `factor` below 1 magnifies. The moment `at` stays where it is.
  zoom(at: number, factor: number): void {
    const length = Math.min(this.total, Math.max(this.least, this.length * factor));
    const from = at - (at - this.from) * length / this.length;
    this.set(from, from + length);
  }

  pan(ns: number): void {
    this.set(this.from + ns, this.to + ns);
  }

  // Brings an interval on screen, and magnifies it when it would be too narrow to see.
  show(start: number, end: number): void {
    const wanted = Math.max(end - start, this.least / 8);
    if (wanted < this.length / 200 || wanted > this.length) {
      this.set(start - 10 * wanted, end + 10 * wanted);
    } else if (start < this.from || end > this.to) {
      const middle = (start + end) / 2;
      this.set(middle - this.length / 2, middle + this.length / 2);
    }
  }
}
