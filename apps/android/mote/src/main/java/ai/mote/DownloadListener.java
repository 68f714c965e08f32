package ai.mote;

/** Told how far a download is, by the thread that called. What it throws ends the download; what has come stays. */
public interface DownloadListener {
    /** Returns whether to go on; if not, the call is cancelled. */
    boolean onProgress(DownloadProgress progress);
}
