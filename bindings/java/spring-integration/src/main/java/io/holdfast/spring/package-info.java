/** A {@code LockRegistry} for Spring Integration. */
package io.holdfast.spring;
