package ai.mote.blocking;

/** What a beam search found, the best first. */
public final class Beams extends Handle {
    Beams(long number) {
        super(Kind.BEAMS, number);
    }

    public native int size();

    public native int[] ids(int index);

    public native float score(int index);
}
