import { must } from "./failure.js";
import { native, type NativeGate } from "./native.js";
import { type Name, nameBytes, text } from "./options.js";

/** The newest tokens that a gate has seen of a name. Save them with the resource's data. */
export interface Levels {
  exclusive: bigint;
  highest: bigint;
}

/** Kept with a resource: lets the sequencer of a grant pass if it has seen no newer one, without asking the store. */
export class Gate {
  readonly #native: NativeGate = must(native.gateNew());

  /** {@link StaleError}: a newer grant has passed. {@link UnsupportedError}: grants with a limit have no order. */
  pass(sequencer: string): void {
    must(native.gatePass(this.#native, text(sequencer, "a sequencer")));
  }

  /** What it has seen of a name; undefined: nothing yet. */
  levels(name: Name): Levels | undefined {
    const levels = native.gateLevels(this.#native, nameBytes(name));
    return levels && { exclusive: levels[0], highest: levels[1] };
  }

  /** Raises the levels of a name to saved ones, before the first request; it never lowers them. */
  restore(name: Name, levels: Levels): void {
    must(native.gateRestore(
      this.#native, nameBytes(name), BigInt.asUintN(64, levels.exclusive), BigInt.asUintN(64, levels.highest)));
  }
}
