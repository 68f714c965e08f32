package ai.mote;

/** How far a session is and what it holds. */
public final class SessionInfo {
    public final int contextLength;
    public final int numThreads;
    /** Tokens so far. */
    public final long position;
    /** Of the caches when the context is full. */
    public final long stateBytes;
    /** Activations and scratch. */
    public final long arenaBytes;
    /** Of the caches as far as tokens have reached; what other sessions share is counted in each. */
    public final long heldStateBytes;
    /** By overflow = shift. */
    public final long forgottenTokens;

    SessionInfo(long[] numbers) {
        contextLength = (int) numbers[0];
        numThreads = (int) numbers[1];
        position = numbers[2];
        stateBytes = numbers[3];
        arenaBytes = numbers[4];
        heldStateBytes = numbers[5];
        forgottenTokens = numbers[6];
    }
}
