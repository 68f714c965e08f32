package ai.mote;

/** Memory of the process, the most seen at any call and end of a text. */
public final class Memory {
    public final long peakRssBytes;
    /** Anonymous memory; 0 where the system does not tell. */
    public final long peakPrivateBytes;
    /** Pages of mapped files, which the system can drop; likewise. */
    public final long peakFileBackedBytes;

    Memory(long[] numbers) {
        peakRssBytes = numbers[0];
        peakPrivateBytes = numbers[1];
        peakFileBackedBytes = numbers[2];
    }
}
