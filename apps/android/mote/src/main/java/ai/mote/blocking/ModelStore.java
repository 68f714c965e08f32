package ai.mote.blocking;

import ai.mote.ArgumentException;
import ai.mote.CancelledException;
import ai.mote.DownloadListener;
import ai.mote.DownloadOptions;
import ai.mote.DownloadProgress;
import ai.mote.FileException;
import ai.mote.StateException;
import ai.mote.StoredModel;

/** The models of a user: a folder of files with names. May be used by any number of threads and processes. */
public final class ModelStore extends Handle {
    static {
        NativeLibrary.load();
    }

    /**
     * root: the folder, which need not exist, on Android below Context.getNoBackupFilesDir(); null: that of MOTE_HOME, or
     * the user's folder of caches
     */
    public ModelStore(String root) {
        super(Kind.STORE, open(root));
    }

    /**
     * Those of a name, parts included, without a tag all of the model; of null all that there are.
     * Errors: {@link FileException} with the closest name, {@link ArgumentException}
     */
    public native StoredModel[] list(String name);

    /**
     * The file of a name, for {@link Model#open}; it is noted as used now. No network is needed.
     * Errors: {@link FileException} if it has to be downloaded, {@link ArgumentException} naming the files if there are several
     */
    public native String find(String name);

    /** Deletes the files of a name, parts too, and returns how many bytes that freed. Errors: {@link StateException} while one is downloaded */
    public native long remove(String name);

    /** Deletes files, those first that were used longest ago, until all take at most so many bytes. What is open or downloaded stays. */
    public native StoredModel[] evict(long maxBytes);

    /** what: a name of the hub, or the URL of a .mote file */
    public Download begin(String what, DownloadOptions options) {
        return new Download(openDownload(what, options));
    }

    /**
     * Downloads a file, or goes on with what an earlier call has left, and returns its path.
     * listener: may be null
     * Errors: {@link FileException} where it cannot be had, arrived damaged or has no room, {@link StateException} on a
     * metered network, {@link CancelledException}, and those of {@link Model#open} for a file that this device cannot run
     */
    public String download(String what, DownloadOptions options, DownloadListener listener) {
        try (Download download = begin(what, options)) {
            while (true) {
                DownloadProgress progress = download.next();
                if (listener != null && !listener.onProgress(progress)) {
                    download.cancel();
                }
                if (progress.isDone) {
                    return progress.path;
                }
            }
        }
    }

    private static native long open(String root);

    private native long openDownload(String what, DownloadOptions options);
}
