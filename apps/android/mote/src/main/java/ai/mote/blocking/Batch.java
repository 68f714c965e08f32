package ai.mote.blocking;

import ai.mote.Options;

/**
 * Sequences that decode together: a step reads the weights once for all of them, and each gets what it would get alone.
 * {@link #add}, {@link #addFork}, {@link #cancel} and {@link #numSequences} may come from any thread, also during a step.
 */
public final class Batch extends Handle {
    Batch(long number) {
        super(Kind.BATCH, number);
    }

    /** session: what the sequence continues; null: a new one. Returns its number. */
    public native long add(Session session, int[] ids, Options options);

    /** The same with a fork of the session. */
    public native long addFork(Session session, int[] ids, Options options);

    /** Its next piece is its last. */
    public native void cancel(long sequence);

    /** That are not over. */
    public native long numSequences();

    /** A chunk of one prompt, and a token of each that has read its own. */
    public native BatchPiece[] step();
}
