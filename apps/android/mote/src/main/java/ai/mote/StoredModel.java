package ai.mote;

/** A file of a store, or the part of one that a download goes on with. */
public final class StoredModel {
    /** `org/name@revision:tag` */
    public final String name;
    public final String path;
    /** Where it came from, a JSON object; "": that is not known. */
    public final String manifest;
    /** That are there. */
    public final long bytes;
    /** Of the whole file; 0: not known. */
    public final long totalBytes;
    public final boolean isWhole;
    /** Since 1970. */
    public final long lastUsedSeconds;

    StoredModel(String name, String path, String manifest, long[] numbers) {
        this.name = name;
        this.path = path;
        this.manifest = manifest;
        bytes = numbers[0];
        totalBytes = numbers[1];
        isWhole = numbers[2] != 0;
        lastUsedSeconds = numbers[3];
    }
}
