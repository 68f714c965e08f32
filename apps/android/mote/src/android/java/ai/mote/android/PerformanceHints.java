package ai.mote.android;

import android.content.Context;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Tells Android how long a token takes and how long it may, so that it clocks the CPUs as high as that needs and no higher.
 * Does nothing before Android 12, and on devices that take no hints. One thread at a time.
 */
public final class PerformanceHints implements AutoCloseable {
    /** A PerformanceHintManager.Session; null: none. */
    private final Object session;

    private PerformanceHints(Object session) {
        this.session = session;
    }

    /**
     * For the threads of all sessions that are open. They need not have computed anything.
     * tokensPerSecond: to be held, such as the option `pace`
     */
    public static PerformanceHints of(Context context, double tokensPerSecond) {
        Object manager = context.getSystemService("performance_hint");
        Object[] arguments = {threadsNamed("mote"), Math.round(1e9 / tokensPerSecond)};
        return new PerformanceHints(call(manager, "createHintSession", new Class<?>[] {int[].class, long.class}, arguments));
    }

    /** Whether the device takes them. */
    public boolean areTaken() {
        return session != null;
    }

    /** How long the last token took to compute. */
    public void report(long nanoseconds) {
        call(session, "reportActualWorkDuration", new Class<?>[] {long.class}, nanoseconds);
    }

    @Override
    public void close() {
        call(session, "close", new Class<?>[0]);
    }

    /** null where there is nothing to call, or it refuses: hints may be lost. */
    private static Object call(Object object, String name, Class<?>[] types, Object... arguments) {
        try {
            return object == null ? null : object.getClass().getMethod(name, types).invoke(object, arguments);
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }

    /** The numbers that the system has for threads of this process by their name. */
    static int[] threadsNamed(String name) {
        File[] tasks = new File("/proc/self/task").listFiles();
        List<Integer> found = new ArrayList<>();
        for (File task : tasks == null ? new File[0] : tasks) {
            try (BufferedReader reader = new BufferedReader(new FileReader(new File(task, "comm")))) {
                if (name.equals(reader.readLine())) {
                    found.add(Integer.valueOf(task.getName()));
                }
            } catch (IOException error) {
                // The thread has ended.
            }
        }
        int[] threads = new int[found.size()];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = found.get(i);
        }
        return threads;
    }
}
