import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** A lock of Curator that is told what to do by its standard input: one word a line. For bench/zookeeper-peers
 *  it tells the time, in ns of the monotonic clock: of a pair, when it got the lock, before it let go of it. */
public class Peer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[2]), 5000,
            new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String word = in.readLine(); word != null; word = in.readLine()) {
            if (word.equals("try")) {
                System.out.println(mutex.acquire(0, TimeUnit.MILLISECONDS) ? "yes" : "no");
            } else if (word.equals("take")) {
                mutex.acquire();
                System.out.println("yes");
            } else if (word.equals("release")) {
                mutex.release();
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
