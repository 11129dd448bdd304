import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

/** A lock of Curator, its mutex or (with a fourth argument) its read-write lock, that is told what to do by its
 *  standard input: one word a line. For bench/zookeeper-peers
 *  it tells the time, in ns of the monotonic clock: of a pair, when it got the lock, before it let go of it. */
public class Peer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[2]), 5000,
            new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        InterProcessReadWriteLock both = args.length > 3 ? new InterProcessReadWriteLock(client, args[1]) : null;
        InterProcessMutex mutex = both != null ? both.writeLock() : new InterProcessMutex(client, args[1]);
        InterProcessMutex held = mutex;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String word = in.readLine(); word != null; word = in.readLine()) {
            if (word.equals("try")) {
                held = mutex;
                System.out.println(mutex.acquire(0, TimeUnit.MILLISECONDS) ? "yes" : "no");
            } else if (word.equals("take") || word.equals("share")) {
                held = word.equals("take") ? mutex : both.readLock();
                held.acquire();
                System.out.println("yes");
            } else if (word.equals("release")) {
                held.release();
                System.out.println("done");
            } else if (word.startsWith("pairs ")) {
                int count = Integer.parseInt(word.substring(6));
                long began = System.nanoTime();
                for (int i = 0; i < count; i++) {
                    mutex.acquire();
                    mutex.release();
                }
                System.out.println((System.nanoTime() - began) / count);
            } else if (word.equals("get")) {
                mutex.acquire();
                System.out.println(System.nanoTime());
            } else if (word.equals("pass")) {
                long began = System.nanoTime();
                mutex.release();
                System.out.println(began);
            } else if (word.equals("crash")) {
                Runtime.getRuntime().halt(9);
            }
        }
        client.close();
    }
}
