package ai.mote;

/** How texts become vectors. A set of options never changes. */
public final class EmbedOptions {
    /** The file's defaults. */
    public static final EmbedOptions NONE = new EmbedOptions(0, null, null, false, false, false);

    private final int dimensions;
    private final String promptName;
    private final String prompt;
    private final boolean keepLength;
    private final boolean refuseLong;
    private final boolean plainText;

    private EmbedOptions(int dimensions, String promptName, String prompt, boolean keepLength, boolean refuseLong,
            boolean plainText) {
        this.dimensions = dimensions;
        this.promptName = promptName;
        this.prompt = prompt;
        this.keepLength = keepLength;
        this.refuseLong = refuseLong;
        this.plainText = plainText;
    }

    /** The first ones of each vector; 0: all. */
    public EmbedOptions withDimensions(int dimensions) {
        return new EmbedOptions(dimensions, promptName, prompt, keepLength, refuseLong, plainText);
    }

    /** Of the file's prompts. */
    public EmbedOptions withPromptName(String name) {
        return new EmbedOptions(dimensions, name, prompt, keepLength, refuseLong, plainText);
    }

    /** Put before each text. */
    public EmbedOptions withPrompt(String prompt) {
        return new EmbedOptions(dimensions, promptName, prompt, keepLength, refuseLong, plainText);
    }

    /** Vectors are not divided by their length. */
    public EmbedOptions keepingLength() {
        return new EmbedOptions(dimensions, promptName, prompt, true, refuseLong, plainText);
    }

    /** A text that is too long is a {@link ContextFullException}; else its end is cut off. */
    public EmbedOptions refusingLong() {
        return new EmbedOptions(dimensions, promptName, prompt, keepLength, true, plainText);
    }

    /** Special tokens spelled in texts stay text. */
    public EmbedOptions asPlainText() {
        return new EmbedOptions(dimensions, promptName, prompt, keepLength, refuseLong, true);
    }
}
