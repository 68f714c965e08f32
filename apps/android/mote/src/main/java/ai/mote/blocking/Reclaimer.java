package ai.mote.blocking;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** Closes the number of a handle once: when it is told to, or when the handle was collected. */
final class Reclaimer extends PhantomReference<Handle> {
    // java.lang.ref.Cleaner is not there before Android 13.
    private static final ReferenceQueue<Handle> FORGOTTEN = new ReferenceQueue<>();
    private static final Set<Reclaimer> OPEN = ConcurrentHashMap.newKeySet();

    static {
        Thread thread = new Thread("mote-reclaimer") {
            @Override
            public void run() {
                closeForgotten();
            }
        };
        thread.setDaemon(true);
        thread.start();
    }

    private final int kind;
    private final long number;
    private final AtomicBoolean isClosed = new AtomicBoolean();

    private Reclaimer(Handle handle, int kind, long number) {
        super(handle, FORGOTTEN);
        this.kind = kind;
        this.number = number;
    }

    static Reclaimer of(Handle handle, int kind, long number) {
        Reclaimer reclaimer = new Reclaimer(handle, kind, number);
        OPEN.add(reclaimer);
        return reclaimer;
    }

    void close(boolean cancels) {
        if (isClosed.compareAndSet(false, true)) {
            OPEN.remove(this);
            Handle.close(kind, number, cancels);
        }
    }

    static int numOpen() {
        return OPEN.size();
    }

    private static void closeForgotten() {
        while (true) {
            try {
                ((Reclaimer) FORGOTTEN.remove()).close(false);
            } catch (InterruptedException ignored) {
                // Nobody has a reason to stop this thread.
            }
        }
    }
}
