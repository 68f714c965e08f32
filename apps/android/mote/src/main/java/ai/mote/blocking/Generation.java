package ai.mote.blocking;

import ai.mote.Piece;
import ai.mote.StateException;
import ai.mote.Statistics;

/** A text that a session writes, piece by piece. Takes one call at a time, together with its session. */
public final class Generation extends Handle {
    /** Kept from being forgotten together with its batch. */
    private final Session session;

    Generation(long number, Session session) {
        super(Kind.GENERATION, number);
        this.session = session;
    }

    /** The first call reads the prompt, each samples a token. After the last piece: empty ones. Errors: also {@link StateException} */
    public native Piece next();

    /** The call that runs, or the next one, gives the last piece. From any thread. */
    public native void cancel();

    public native Statistics statistics();

    /** All pieces that are left. */
    public Statistics run(TextListener listener) {
        Piece piece;
        do {
            piece = next();
            if (!piece.text.isEmpty() && !listener.onText(piece.text)) {
                cancel();
            }
        } while (!piece.isLast());
        return statistics();
    }
}
