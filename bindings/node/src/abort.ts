// One listener for each signal, however many waits it ends: Node.js warns of a leak at eleven.
const waits = new WeakMap<AbortSignal, Set<() => void>>();

export function onAbort(signal: AbortSignal, stop: () => void): void {
  let stops = waits.get(signal);
  if (stops === undefined) {
    waits.set(signal, (stops = new Set()));
    signal.addEventListener("abort", () => waits.get(signal)?.forEach((one) => one()), { once: true });
  }
  stops.add(stop);
}

export function forgetAbort(signal: AbortSignal, stop: () => void): void {
  waits.get(signal)?.delete(stop);
}
