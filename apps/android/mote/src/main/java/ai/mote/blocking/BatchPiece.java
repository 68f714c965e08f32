package ai.mote.blocking;

import ai.mote.MoteException;
import ai.mote.Piece;
import ai.mote.Statistics;

/** What a step of a batch adds to a sequence. */
public final class BatchPiece {
    public final long sequence;
    /** null after an error. */
    public final Piece piece;
    /** That the sequence ended with; else null. */
    public final MoteException error;
    /** Of a sequence that is over; else null. */
    public final Statistics statistics;

    BatchPiece(long sequence, Piece piece, MoteException error, Statistics statistics) {
        this.sequence = sequence;
        this.piece = piece;
        this.error = error;
        this.statistics = statistics;
    }
}
