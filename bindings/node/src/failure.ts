import { Code, codes, errorClasses } from "./codes.js";
import { HoldfastError } from "./error.js";
import type { NativeFailure } from "./native.js";

/** Milliseconds of the library: -1 means for ever. */
export function fromMs(ms: number): number {
  return ms < 0 || ms > Number.MAX_SAFE_INTEGER ? Infinity : ms;
}

/** The error for what the addon returned or rejected with. */
export function errorOf(failure: NativeFailure, options?: ErrorOptions): HoldfastError {
  const row = codes[failure.code] ?? { name: `HF_${failure.code}`, exitStatus: 70 };
  const Class = errorClasses[failure.code] ?? HoldfastError;
  return new Class(
    {
      code: row.name,
      text: failure.text,
      exitStatus: row.exitStatus,
      retriable: failure.retriable !== 0,
      storeCode: failure.storeCode,
      mayHold: fromMs(failure.mayHold),
    },
    options,
  );
}

/** An error that is found on this side, in the words of the library or, better, with what to do. */
export function errorWith(code: number, text?: string, options?: ErrorOptions): HoldfastError {
  return errorOf(
    { code, text: text ?? codes[code]?.text ?? "", retriable: 0, storeCode: 0, mayHold: 0 }, options);
}

/** Throws if it is a failure. */
export function must<T>(result: T | NativeFailure): T {
  if (typeof result === "object" && result !== null && "text" in result && "code" in result)
    throw errorOf(result as NativeFailure);
  return result as T;
}

/** Waits for a job of the addon. */
export async function settled<T>(job: Promise<unknown>): Promise<T> {
  try {
    return (await job) as T;
  } catch (failure) {
    throw errorOf(failure as NativeFailure);
  }
}

export const invalid = (text: string) => errorWith(Code.INVALID, text);
