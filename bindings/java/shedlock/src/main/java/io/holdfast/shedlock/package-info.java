/** A {@code LockProvider} for ShedLock. */
package io.holdfast.shedlock;
