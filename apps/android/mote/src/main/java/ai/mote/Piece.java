package ai.mote;

/** What a step of a generation adds. */
public final class Piece {
    private static final TokenLogprob[] NO_LOGPROBS = {};

    /** The token that was sampled; -1: none. */
    public final int id;
    /** Whole characters; may be empty: text is held back while a character or a stop string may go on. */
    public final String text;
    /** Of the last piece; null before. */
    public final FinishReason finishReason;
    /** Of the token; 0 unless the options logprobs or top_logprobs ask for it. */
    public final float logprob;
    /** Likeliest first. */
    public final TokenLogprob[] topLogprobs;

    Piece(int id, String text, int finishReason, float logprob, int[] topIds, float[] topLogprobs) {
        this.id = id;
        this.text = text;
        this.finishReason = FinishReason.of(finishReason);
        this.logprob = logprob;
        this.topLogprobs = topIds == null ? NO_LOGPROBS : TokenLogprob.of(topIds, topLogprobs);
    }

    public boolean isLast() {
        return finishReason != null;
    }
}
