package ai.mote;

/** What a reply took. */
public final class ChatStatistics {
    public final long promptTokens;
    /** Of the prompt, that needed no computation. */
    public final long keptTokens;
    /** Of the conversation, because the context was full. */
    public final long forgottenTokens;
    /** Of the session. */
    public final long position;
    public final long contextLength;
    /** Its prompt is what was not kept. */
    public final Statistics generation;

    ChatStatistics(long[] counts, Statistics generation) {
        promptTokens = counts[0];
        keptTokens = counts[1];
        forgottenTokens = counts[2];
        position = counts[3];
        contextLength = counts[4];
        this.generation = generation;
    }
}
