package ai.mote.blocking;

/** What tests may know of handles that are open. */
public final class Forgotten {
    private Forgotten() {}

    public static int numOpen() {
        return Reclaimer.numOpen();
    }
}
