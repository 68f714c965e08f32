package ai.mote.blocking;

import ai.mote.Piece;
import ai.mote.StateException;
import ai.mote.Statistics;

/** A text that a session writes, piece by piece. Takes one call at a time, together with its session. */
public final class Generation extends Handle {
    Generation(long number) {
        super(Kind.GENERATION, number);
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
