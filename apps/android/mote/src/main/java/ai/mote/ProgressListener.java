package ai.mote;

/** Told how much of the opening of a model is done, by the thread that opens it. What it throws ends the opening. */
public interface ProgressListener {
    /** fraction: 0..1, never less than before. Returns whether to go on; if not, the call is cancelled. */
    boolean onProgress(double fraction);
}
