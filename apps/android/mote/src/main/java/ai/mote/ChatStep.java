package ai.mote;

/** What is next in a reply. */
public final class ChatStep {
    /** In the order of mote_chat_event_kind. */
    public enum Kind {
        /** A token of which nothing is known yet: its text may be part of a mark. */
        NONE,
        CONTENT,
        REASONING,
        /** text: the tool's name. */
        CALL_BEGIN,
        /** text: a piece of the arguments as JSON. */
        CALL_ARGUMENTS,
        CALL_END,
        /** The call that was begun is malformed: what was written of it follows as content. */
        CALL_DISCARDED,
        DONE;

        private static final Kind[] ALL = values();
    }

    private static final TokenLogprob[] NO_LOGPROBS = {};

    public final Kind kind;
    /** Of a call, from 0. */
    public final int callIndex;
    public final String text;
    public final String callId;
    /** The first step that a token leads to has it; -1: none. */
    public final int tokenId;
    /** Of the token; 0 unless the options logprobs or top_logprobs ask for it. */
    public final float logprob;
    /** Likeliest first. */
    public final TokenLogprob[] topLogprobs;
    /** Of {@link Kind#DONE}, else null. */
    public final FinishReason finishReason;

    ChatStep(int kind, int callIndex, String text, String callId, int tokenId, float logprob, int finishReason,
            int[] topIds, float[] topLogprobs) {
        this.kind = kind < Kind.ALL.length ? Kind.ALL[kind] : Kind.NONE;
        this.callIndex = callIndex;
        this.text = text;
        this.callId = callId;
        this.tokenId = tokenId;
        this.logprob = logprob;
        this.topLogprobs = topIds == null ? NO_LOGPROBS : TokenLogprob.of(topIds, topLogprobs);
        this.finishReason = this.kind == Kind.DONE ? FinishReason.of(finishReason) : null;
    }
}
