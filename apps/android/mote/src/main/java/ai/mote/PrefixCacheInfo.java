package ai.mote;

/** What a prefix cache holds and has saved. */
public final class PrefixCacheInfo {
    public final long bytes;
    /** Texts that it knows. */
    public final long snapshots;
    public final long hits;
    public final long misses;
    /** That were not computed again. */
    public final long reusedTokens;

    PrefixCacheInfo(long[] numbers) {
        bytes = numbers[0];
        snapshots = numbers[1];
        hits = numbers[2];
        misses = numbers[3];
        reusedTokens = numbers[4];
    }
}
