package io.holdfast;

import java.time.Duration;

/** The second process of a scenario: ROLE URL NAME. It says each step on a line. */
final class Child {
    private Child() {}

    public static void main(String[] args) throws Exception {
        Holdfast locks = Holdfast.open(args[1]);
        NamedLock lock = locks.lock(args[2]);
        NamedLock lasting = lock.ttl(Duration.ofMinutes(10));
        switch (args[0]) {
            case "exclusion":
                try {
                    lock.acquire(Duration.ZERO);
                } catch (HoldfastException e) {
                    System.out.println(e.code());
                }
                try (Held held = lock.acquire()) {
                    System.out.println("held");
                }
                break;
            case "end": // by the end of its last thread
                lasting.acquire();
                System.out.println("held");
                break;
            case "exit":
                lasting.acquire();
                System.out.println("held");
                System.exit(0);
                break;
            case "throw":
                lasting.acquire();
                System.out.println("held");
                throw new IllegalStateException("nobody catches this");
            case "exit-waiting": // while threads wait, park, renew and inspect
                for (int i = 0; i < 8; i++) {
                    Threads.daemon(() -> quietly(lock::acquire), "waits").start();
                    lock.acquireAsync();
                    Threads.daemon(() -> {
                        while (true) {
                            quietly(() -> locks.lock(args[2] + "/busy").acquire().close());
                            quietly(() -> locks.inspect(Query.all()));
                        }
                    }, "works").start();
                }
                locks.lock(args[2] + "/kept").ttl(Duration.ofMinutes(10)).acquire().lost();
                Scene.untilWaiting(locks, args[2], 16);
                System.out.println("waiting");
                System.exit(0);
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void quietly(Work work) {
        try {
            work.run();
        } catch (Exception e) {
            // closed at the exit
        }
    }
}
