package android.os;

import java.util.ArrayList;
import java.util.List;

/** Stands in for Android's. */
public final class PerformanceHintManager {
    public int[] threads;
    public long target;
    public final Session session = new Session();

    public Session createHintSession(int[] threads, long targetNanoseconds) {
        this.threads = threads;
        target = targetNanoseconds;
        return session;
    }

    public static final class Session {
        public final List<Long> actual = new ArrayList<>();
        public boolean isClosed;

        public void reportActualWorkDuration(long nanoseconds) {
            if (nanoseconds <= 0) {
                throw new IllegalArgumentException("the actual duration should be positive.");
            }
            actual.add(nanoseconds);
        }

        public void close() {
            isClosed = true;
        }
    }
}
