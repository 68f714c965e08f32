package ai.mote;

/** What a text took. */
public final class Statistics {
    public final FinishReason finishReason;
    public final long promptTokens;
    public final long generatedTokens;
    public final double prefillSeconds;
    /** After the first token. */
    public final double decodeSeconds;
    public final double timeToFirstTokenSeconds;
    /** Of the process. */
    public final long peakRssBytes;
    /** Anonymous memory of the process; 0 where the system does not tell. */
    public final long peakPrivateBytes;
    /** Of those generated: the grammar left no choice, and the model was not run for them. */
    public final long forcedTokens;
    /** By a draft model or from the text, and verified. */
    public final long proposedTokens;
    public final long acceptedTokens;
    public final long numDrafts;
    public final double meanRunLength;
    /** 1: nothing was proposed. */
    public final double speculativeSpeedUp;
    /** Why nothing was proposed; null: it may be. */
    public final String speculativeOffReason;

    Statistics(int finishReason, long[] counts, double[] numbers, String speculativeOffReason) {
        this.finishReason = FinishReason.of(finishReason);
        promptTokens = counts[0];
        generatedTokens = counts[1];
        peakRssBytes = counts[2];
        peakPrivateBytes = counts[3];
        forcedTokens = counts[4];
        proposedTokens = counts[5];
        acceptedTokens = counts[6];
        numDrafts = counts[7];
        prefillSeconds = numbers[0];
        decodeSeconds = numbers[1];
        timeToFirstTokenSeconds = numbers[2];
        meanRunLength = numbers[3];
        speculativeSpeedUp = numbers[4];
        this.speculativeOffReason = speculativeOffReason;
    }
}
