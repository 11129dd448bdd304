/** What the library says of a failure, in the terms of JavaScript. */
export interface FailureDetails {
  /** The name of the code, for example `HF_BUSY`. */
  code: string;
  /** The library's one sentence. */
  text: string;
  /** The exit status of the command `holdfast` for it. */
  exitStatus: number;
  /** The same call may succeed later. */
  retriable: boolean;
  /** The store's own number (an SQLite result code, an errno, …); 0 if there is none. */
  storeCode: number;
  /** `HF_UNKNOWN`: the store may hold the lock for us this many milliseconds; `Infinity`: for ever. */
  mayHold: number;
}

/** The base of all errors of this package. There is one class for each code, for example {@link BusyError}. */
export class HoldfastError extends Error {
  /** The name of the code, for example `HF_BUSY`. */
  readonly code: string;
  /** The exit status of the command `holdfast` for it. */
  readonly exitStatus: number;
  /** The same call may succeed later. */
  readonly retriable: boolean;
  /** The store's own number (an SQLite result code, an errno, …); 0 if there is none. */
  readonly storeCode: number;
  /** `HF_UNKNOWN`: the store may hold the lock for us this many milliseconds; `Infinity`: for ever. */
  readonly mayHold: number;

  /** @internal */
  constructor(details: FailureDetails, options?: ErrorOptions) {
    super(details.text, options);
    // What was cancelled is called as Node.js calls it, so that `err.name === "AbortError"` holds.
    this.name = details.code === "HF_CANCELLED" ? "AbortError" : new.target.name;
    this.code = details.code;
    this.exitStatus = details.exitStatus;
    this.retriable = details.retriable;
    this.storeCode = details.storeCode;
    this.mayHold = details.mayHold;
  }
}
