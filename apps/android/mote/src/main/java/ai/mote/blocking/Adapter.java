package ai.mote.blocking;

/** What a .mote-adapter file adds to a model. May be used by any number of threads. */
public final class Adapter extends Handle {
    Adapter(long number) {
        super(Kind.ADAPTER, number);
    }

    /** A JSON object: name, path, bytes of memory. */
    public native String describe();
}
