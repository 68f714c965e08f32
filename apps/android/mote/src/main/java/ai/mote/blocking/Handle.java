package ai.mote.blocking;

/**
 * What is closed by whoever opened it; in any order, since a session keeps its model alive and a generation its session.
 * A call after that, also one that a close overtakes, is an {@link IllegalStateException}. What is forgotten is closed
 * some time after nothing refers to it.
 */
public abstract class Handle implements AutoCloseable {
    /** In the order of the kinds in handles.cpp. */
    enum Kind {
        MODEL("model"),
        SESSION("session"),
        GENERATION("generation"),
        CHAT("chat"),
        CHAT_TURN("chat turn"),
        GRAMMAR("grammar"),
        PREFIX_CACHE("prefix cache"),
        ADAPTER("adapter"),
        BATCH("batch"),
        BEAMS("set of beams"),
        EMBEDDER("embedder"),
        STORE("store"),
        DOWNLOAD("download");

        private final String text;

        Kind(String text) {
            this.text = text;
        }
    }

    static {
        NativeLibrary.load();
    }

    private final Kind kind;
    private final Reclaimer reclaimer;
    /** Of the C API; 0: closed. Native code reads it. */
    private volatile long number;

    Handle(Kind kind, long number) {
        this.kind = kind;
        this.number = number;
        this.reclaimer = Reclaimer.of(this, kind.ordinal(), number);
    }

    /** Ends what runs on it, as cancelled. Nothing happens if it is closed already. May come from any thread. */
    @Override
    public void close() {
        number = 0;
        reclaimer.close(true);
    }

    public final boolean isClosed() {
        return number == 0;
    }

    /** For native code. */
    private IllegalStateException closedException() {
        return new IllegalStateException("the " + kind.text + " is closed");
    }

    /** cancels: what runs on it ends; else it may go on for others, such as a generation whose session was forgotten. */
    static native void close(int kind, long number, boolean cancels);
}
