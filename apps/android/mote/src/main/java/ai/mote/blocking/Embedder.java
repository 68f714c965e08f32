package ai.mote.blocking;

import ai.mote.EmbedOptions;

/** Texts to vectors. Takes one call at a time. */
public final class Embedder extends Handle {
    Embedder(long number) {
        super(Kind.EMBEDDER, number);
    }

    /** A vector a text; they are computed together, and none depends on the others. */
    public native float[][] embed(String[] texts, EmbedOptions options);

    /** How many numbers a vector has. */
    public native int dimensions(EmbedOptions options);

    /** The call that runs, or the next one, is cancelled. From any thread. */
    public native void cancel();

    /** Replays the golden samples: a JSON object with "passed". */
    public native String checkGolden();
}
