package ai.mote;

/** How far a download is. */
public final class DownloadProgress {
    /** Of the model. */
    public final String name;
    /** Where the file goes; "": not known yet. */
    public final String path;
    /** That are there; fewer than before where what came proved to be wrong. */
    public final long bytes;
    /** -1: not known yet. */
    public final long totalBytes;
    public final boolean isDone;
    /** Once done: the store has another file than before. */
    public final boolean isNew;
    /** What the download waits for; "": it does not. */
    public final String waitsFor;

    DownloadProgress(String name, String path, long[] numbers, String waitsFor) {
        this.name = name;
        this.path = path;
        bytes = numbers[0];
        totalBytes = numbers[1];
        isNew = numbers[2] != 0;
        isDone = numbers[3] != 0;
        this.waitsFor = waitsFor;
    }
}
