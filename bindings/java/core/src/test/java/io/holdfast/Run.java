package io.holdfast;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** The scenarios and attacks on each URL. */
final class Run {
    private Run() {}

    /** Those of a JVM that has done nothing yet. */
    static int OWN_THREADS;

    static int threads() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream().filter(line -> line.startsWith("Threads:"))
                .mapToInt(line -> Integer.parseInt(line.substring(8).trim())).sum();
    }

    private static boolean one(String url, Method scenario) {
        String title = "java " + url.split(":")[0] + ": " + scenario.getName();
        try (Scene scene = new Scene(url, scenario.getName())) {
            scenario.invoke(null, scene);
            System.out.println("ok - " + title);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Scene.Skipped) {
                System.out.println("skipped - " + title + ": " + e.getCause().getMessage());
                return true;
            }
            e.getCause().printStackTrace(System.out);
            System.out.println("not ok - " + title);
            return false;
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
        return true;
    }

    private static Stream<Method> scenarios(Class<?> of) {
        return Arrays.stream(of.getDeclaredMethods())
                .filter(method -> !Modifier.isPrivate(method.getModifiers()) && Arrays.equals(method.getParameterTypes(), new Class<?>[] {Scene.class}));
    }

    public static void main(String[] args) throws Exception {
        OWN_THREADS = threads();
        Path scratch = Files.createTempDirectory("holdfast-java-");
        boolean well = true;
        for (String given : args.length > 0 ? List.of(args) : List.of("memory://", "sqlite:")) {
            String url = given.equals("sqlite:") ? "sqlite:" + scratch + "/locks.db" : given.equals("memory://") ? "memory://scenarios" : given;
            List<Method> all = Stream.concat(scenarios(Scenarios.class), scenarios(Attacks.class)).sorted(Comparator.comparing(Method::getName)).toList();
            for (Method scenario : all) {
                well &= one(url, scenario);
            }
        }
        try (Stream<Path> files = Files.walk(scratch)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
        System.exit(well ? 0 : 1);
    }
}
