import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** The lock of ZooKeeper's own recipes, told what to do by its standard input: one word a line. */
public class RecipePeer {
    public static void main(String[] args) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(args[0], Integer.parseInt(args[2]), event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        try {
            zk.create("/interop", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException e) {
            // somebody was here before
        }
        Semaphore acquired = new Semaphore(0);
        WriteLock lock = new WriteLock(zk, args[1], ZooDefs.Ids.OPEN_ACL_UNSAFE, new LockListener() {
            @Override
            public void lockAcquired() {
                acquired.release();
            }

            @Override
            public void lockReleased() {
                // told by unlock() itself
            }
        });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String word = in.readLine(); word != null; word = in.readLine()) {
            if (word.equals("try")) {
                boolean got = lock.lock();
                if (!got) {
                    lock.unlock();
                }
                acquired.drainPermits();
                System.out.println(got ? "yes" : "no");
            } else if (word.equals("take")) {
                if (!lock.lock()) {
                    acquired.acquire();
                }
                acquired.drainPermits();
                System.out.println("yes");
            } else if (word.equals("release")) {
                lock.unlock();
                System.out.println("done");
            }
        }
        zk.close();
    }
}
