package ai.mote;

/** What a model file is. */
public final class ModelInfo {
    public final int vocabSize;
    public final int maxPositionEmbeddings;
    /** -1: none. */
    public final int bosTokenId;
    public final boolean hasTokenizer;
    public final boolean hasChatTemplate;
    public final long fileBytes;
    public final long weightBytes;
    /** Text: sessions can be opened. */
    public final boolean generates;
    /** Texts: embedders can be opened. */
    public final boolean embeds;

    ModelInfo(long[] numbers) {
        vocabSize = (int) numbers[0];
        maxPositionEmbeddings = (int) numbers[1];
        bosTokenId = (int) numbers[2];
        hasTokenizer = numbers[3] != 0;
        hasChatTemplate = numbers[4] != 0;
        fileBytes = numbers[5];
        weightBytes = numbers[6];
        generates = numbers[7] != 0;
        embeds = numbers[8] != 0;
    }
}
