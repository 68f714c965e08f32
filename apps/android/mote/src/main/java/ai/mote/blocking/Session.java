package ai.mote.blocking;

import ai.mote.ContextFullException;
import ai.mote.FileException;
import ai.mote.Options;
import ai.mote.SessionFileException;
import ai.mote.SessionInfo;
import ai.mote.StateException;
import ai.mote.Statistics;

/**
 * One text that a model reads and goes on with. Takes one call at a time, its generations' included: another one
 * meanwhile is a {@link StateException}. Closing, {@link #cancel} and {@link #position} may come at any time.
 */
public final class Session extends Handle {
    /** Native code reads it. */
    private final int vocabSize;
    /** Kept from being forgotten, which would end the texts. */
    private volatile Batch batch;

    Session(long number, int vocabSize) {
        super(Kind.SESSION, number);
        this.vocabSize = vocabSize;
    }

    /** Ids of a text that the session goes on with: BOS and such only at its start. */
    public int[] tokenize(String text) {
        return tokenize(text, true);
    }

    public native int[] tokenize(String text, boolean parseSpecial);

    /** Reads ids. Errors: {@link ContextFullException} */
    public native void append(int[] ids);

    public void append(String text) {
        append(tokenize(text));
    }

    /** Makes ids the session's tokens. Returns how many of them it had, which were not computed again. */
    public native long setTokens(int[] ids);

    /** Goes to the longest beginning of a text, but for its last id, that is known. Returns its length. */
    public native long rewindToPrefix(int[] ids);

    public native int[] tokens();

    /** Reads ids and gives the logits after the last one. */
    public native float[] prefill(int[] ids);

    public native float[] decode(int id);

    /** After the last token. */
    public native float[] logits();

    /** Reads ids and gives the logits after each, one row after another. */
    public native float[] verify(int[] ids);

    /** Reads ids and gives the logarithm of the probability of each but the first. */
    public native float[] score(int[] ids);

    public native SessionInfo info();

    public native long position();

    public native void reset();

    /** Goes back to the first tokens. */
    public native void rewind(long position);

    /**
     * Goes on with another of the file's targets, such as "cpu", and keeps its tokens. It moves to "cpu" by itself where a backend fails.
     * Errors, which change nothing: {@link ai.mote.ArgumentException} naming the targets that there are, {@link ai.mote.BackendException}
     */
    public native void moveTo(String backend);

    /** The target that computes. */
    public native String backend();

    /** Why the session left another target by itself; "": it did not. */
    public native String movedBecause();

    /** A session of its own with the same options and tokens; what they have in common is one memory. */
    public Session fork() {
        return new Session(openFork(), vocabSize);
    }

    /** Writes tokens and caches to a file, whole or not at all. Errors: {@link FileException} */
    public native void save(String path);

    /** Goes on from a file of the same model. Errors, which change nothing: {@link SessionFileException}, {@link FileException} */
    public native void restore(String path);

    /** The call that runs, or the next one, ends as cancelled. From any thread. */
    public native void cancel();

    /** Takes back a cancel that no call has reported. Not during another call. */
    public native void forgetCancel();

    /** A smaller model that proposes tokens; null: none. */
    public native void setDraftModel(Model draft);

    /** Computes from now on with adapters, each multiplied by its weight; none: the model alone. */
    public native void setAdapters(Adapter[] adapters, float[] weights);

    /** Texts of the session are sequences of the batch from now on; null: alone again. */
    public void setBatch(Batch batch) {
        attach(batch);
        this.batch = batch;
    }

    /** Replays the golden samples: a JSON object with "passed". The session is reset before and after. */
    public native String checkGolden();

    public native void startProfile();

    /** A JSON object that Perfetto opens. */
    public native String stopProfile();

    public Generation generation(String prompt, Options options) {
        return generation(tokenize(prompt), options);
    }

    /** ids: none: goes on from what the session has; options: those of a generation */
    public Generation generation(int[] ids, Options options) {
        return new Generation(openGeneration(ids, options), this);
    }

    /** Generates to the end. What the listener throws comes out of the call; the listener may call what it likes but this session. */
    public Statistics generate(String prompt, Options options, TextListener listener) {
        try (Generation generation = generation(prompt, options)) {
            return generation.run(listener);
        }
    }

    /** The likeliest texts. */
    public Beams beamSearch(int[] ids, Options options) {
        return new Beams(openBeams(ids, options));
    }

    /** A conversation in this session, which the caller closes. */
    public Chat chat(Model model) {
        return new Chat(model.openChat(), this, false);
    }

    private native void attach(Batch batch);

    private native long openFork();

    private native long openGeneration(int[] ids, Options options);

    private native long openBeams(int[] ids, Options options);
}
