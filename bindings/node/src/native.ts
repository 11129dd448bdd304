/** What the addon hands out; only this package calls it. */
export interface NativeFailure {
  code: number;
  retriable: number;
  storeCode: number;
  mayHold: number;
  text: string;
}

declare const kind: unique symbol;
export type NativeClient = { readonly [kind]: "client" };
export type NativeHandle = { readonly [kind]: "handle" };
export type NativeGate = { readonly [kind]: "gate" };

export type JobKind =
  | "open" | "close" | "adopt" | "renew" | "detach" | "check" | "break" | "setup" | "purge" | "inspect"
  | "diagnose" | "stores";

export interface Native {
  readonly version: string;
  job(
    kind: JobKind, client?: NativeClient, handle?: NativeHandle, name?: Uint8Array, text?: string,
    number?: number, options?: Float64Array,
  ): Promise<unknown>;
  acquireStart(
    client: NativeClient, name: Uint8Array, note: string | undefined, options: Float64Array, tag: number,
  ): NativeFailure | undefined;
  acquireStop(client: NativeClient, tag: number): void;
  releaseStart(handle: NativeHandle, tag: number): NativeFailure | undefined;
  keep(handle: NativeHandle, by: 1 | -1): void;
  closeNow(client: NativeClient): void;
  capabilities(client: NativeClient): number;
  look(handle: NativeHandle): [state: number, cause: number, remaining: number] | undefined;
  token(handle: NativeHandle): bigint | NativeFailure;
  sequencer(handle: NativeHandle): string | NativeFailure;
  ticket(handle: NativeHandle): string | NativeFailure;
  reason(handle: NativeHandle): NativeFailure | undefined;
  gateNew(): NativeGate | NativeFailure;
  gatePass(gate: NativeGate, sequencer: string): NativeFailure | undefined;
  gateLevels(gate: NativeGate, name: Uint8Array): [exclusive: bigint, highest: bigint] | undefined;
  gateRestore(gate: NativeGate, name: Uint8Array, exclusive: bigint, highest: bigint): NativeFailure | undefined;
  describe(code: number): [name: string, text: string, exitStatus: number];
  onEvent(
    told: (kind: number, tag: number, handle: NativeHandle | undefined, failure: NativeFailure | undefined,
      cause: number) => void,
  ): void;
}

/** The addon of this platform: one built in this tree, else that of the platform's package. */
function load(): Native {
  const packages = ["gnu", "musl"].map((libc) => `@holdfast/${process.platform}-${process.arch}-${libc}`);
  const reasons: string[] = [];
  for (const place of ["../build/holdfast.node", ...packages]) {
    try {
      return require(place) as Native;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code?.startsWith("HF_")) throw error;
      if (code !== "MODULE_NOT_FOUND") reasons.push(`${place}: ${message}`);
    }
  }
  const why = reasons.length > 0 ? ` (${reasons.join("; ")})` : "";
  throw new Error(
    `holdfast has no library for this system: install ${packages[0]}, without --omit=optional, or build it here` +
      ` by bindings/node/scripts/build-addon${why}`);
}

export const native = load();
