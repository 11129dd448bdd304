package io.holdfast;

/** As bench/cycle.c. */
final class Cycle {
    private Cycle() {}

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[1]);
        try (Holdfast locks = Holdfast.open(args[0])) {
            NamedLock lock = locks.lock("cycle");
            while (System.in.read() == '\n') {
                long start = System.nanoTime();
                for (int i = 0; i < count; i++) {
                    lock.acquire().release();
                }
                System.out.printf("%.3f%n", (System.nanoTime() - start) / 1000.0 / count);
            }
        }
    }
}
