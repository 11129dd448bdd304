import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;

/** Spring Integration's RedisLockRegistry, whose waiters sleep until they are told. See ../README.md. */
public class Peer {
    static LettuceConnectionFactory server;
    static final Map<String, RedisLockRegistry> registries = new HashMap<>();
    static final Map<String, Lock> held = new HashMap<>();

    static long now() {
        return System.nanoTime() / 1000;
    }

    static RedisLockRegistry registry(String ttl) {
        return registries.computeIfAbsent(ttl, word -> {
            RedisLockRegistry made = new RedisLockRegistry(server, "spring", Long.parseLong(word));
            made.setRedisLockType(RedisLockRegistry.RedisLockType.PUB_SUB_LOCK);
            return made;
        });
    }

    static String attempt(String name, String ttl, boolean patient) {
        if (held.containsKey(name)) // its key was deleted; to Spring this thread is still inside
            release(name);
        Lock lock = registry(ttl).obtain(name);
        if (patient)
            lock.lock();
        else if (!lock.tryLock())
            return "busy " + now();
        held.put(name, lock);
        return "held " + now();
    }

    static String release(String name) {
        long start = now();
        try {
            held.remove(name).unlock();
        } catch (IllegalStateException | java.util.ConcurrentModificationException gone) {
            return "gone " + start;
        }
        return "released " + start;
    }

    public static void main(String[] where) throws Exception {
        server = new LettuceConnectionFactory(where[0], Integer.parseInt(where[1]));
        server.afterPropertiesSet();
        server.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            System.out.println(words[0].equals("release") ? release(words[1])
                    : attempt(words[1], words[2], words[0].equals("wait")));
        }
        System.exit(0);
    }
}
