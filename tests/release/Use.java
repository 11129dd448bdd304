// What a user of the jars does: Use DIRECTORY.
import io.holdfast.Codes;
import io.holdfast.Held;
import io.holdfast.Holdfast;
import java.time.Duration;

public class Use {
    public static void main(String[] args) throws InterruptedException {
        try (Holdfast locks = Holdfast.open("sqlite:" + args[0] + "/locks.db");
             Held held = locks.lock("a").acquire(Duration.ofSeconds(10))) {
            try (Held second = locks.lock("a").acquire(Duration.ZERO)) {
                throw new IllegalStateException("not refused");
            } catch (Codes.BusyException e) {
                System.out.println("# Java " + System.getProperty("java.version") + ", libholdfast " + Holdfast.version());
            }
        }
    }
}
