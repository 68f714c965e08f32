package ai.mote.blocking;

import ai.mote.ArgumentException;
import ai.mote.BackendException;
import ai.mote.CancelCheck;
import ai.mote.CancelledException;
import ai.mote.FileException;
import ai.mote.ModelInfo;
import ai.mote.Options;
import ai.mote.ProgramException;
import ai.mote.ProgressListener;
import ai.mote.Syntax;
import java.nio.ByteBuffer;

/** A model file, opened. May be used by any number of threads. */
public final class Model extends Handle {
    private final int vocabSize;

    private Model(long number) {
        super(Kind.MODEL, number);
        vocabSize = info().vocabSize;
    }

    /** Errors: {@link FileException}, {@link ProgramException}, {@link ArgumentException} */
    public static Model open(String path) {
        return open(path, Options.NONE, null);
    }

    /**
     * options: those of a model   progress: may be null
     * Errors: also {@link CancelledException}
     */
    public static Model open(String path, Options options, ProgressListener progress) {
        return new Model(openPath(path, options, progress));
    }

    /**
     * A part of an open file, such as an asset of a package. The descriptor may be closed after the call.
     * length: -1: to the end
     */
    public static Model open(int descriptor, long offset, long length, Options options, ProgressListener progress) {
        return new Model(openDescriptor(descriptor, offset, length, options, progress));
    }

    /** The bytes of a direct buffer, all of it, which must not change while the model is in use. */
    public static Model open(ByteBuffer bytes, Options options, ProgressListener progress) {
        return new Model(openBuffer(bytes, options, progress));
    }

    public native ModelInfo info();

    /** Everything that `mote inspect` prints, as a JSON object. */
    public native String describe();

    /** "" if the file has none. */
    public native String chatTemplate();

    /** generation_config.json of the checkpoint. */
    public native String generationConfig();

    /** Checks the checksums of the whole file. Errors: {@link FileException} */
    public native void checkSegments();

    /**
     * Gives the memory of the mapped file back to the system, which reads pages again when a call needs them. Sessions
     * keep their caches.
     */
    public native void releasePages();

    /** Special tokens that the text spells become their ids, and BOS and such are added as the tokenizer asks. */
    public int[] tokenize(String text) {
        return tokenize(text, true, true);
    }

    public native int[] tokenize(String text, boolean addSpecial, boolean parseSpecial);

    public String detokenize(int[] ids) {
        return detokenize(ids, true);
    }

    public native String detokenize(int[] ids, boolean skipSpecial);

    public Session session() {
        return session(Options.NONE);
    }

    /** options: those of a session */
    public Session session(Options options) {
        return new Session(openSession(options), vocabSize);
    }

    /** A conversation in a session of its own; instructions: the system message, null: none; tools: a JSON list, null: none. */
    public Chat chat(String instructions, String tools, Options sessionOptions) {
        return Chat.open(this, instructions, tools, sessionOptions);
    }

    /** What generated text is to follow. check: may be null. Errors: {@link ArgumentException} with the place */
    public Grammar grammar(Syntax syntax, String source, CancelCheck check) {
        return new Grammar(openGrammar(syntax.ordinal(), source, check));
    }

    /** Errors: {@link FileException}, {@link ProgramException}, {@link ArgumentException} for another base, {@link BackendException} */
    public Adapter adapter(String path) {
        return new Adapter(openAdapter(path));
    }

    /** maxSequences: that are computed at the same time, 0: 16; options: of sequences without a session of their own */
    public Batch batch(int maxSequences, Options options) {
        return new Batch(openBatch(maxSequences, options));
    }

    /** A JSON object: pooling, dimensions, prompts, ... Errors: {@link ArgumentException} if the file gives no embeddings */
    public native String embeddingConfig();

    public Embedder embedder(Options options) {
        return new Embedder(openEmbedder(options));
    }

    native long openChat();

    private static native long openPath(String path, Options options, ProgressListener progress);

    private static native long openDescriptor(int descriptor, long offset, long length, Options options,
            ProgressListener progress);

    private static native long openBuffer(ByteBuffer bytes, Options options, ProgressListener progress);

    private native long openSession(Options options);

    private native long openGrammar(int syntax, String source, CancelCheck check);

    private native long openAdapter(String path);

    private native long openBatch(int maxSequences, Options options);

    private native long openEmbedder(Options options);
}
