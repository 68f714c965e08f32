package ai.mote;

/** Asked now and then by the thread of a long call, which ends if it is true. What it throws ends the call too. */
public interface CancelCheck {
    boolean isCancelled();
}
