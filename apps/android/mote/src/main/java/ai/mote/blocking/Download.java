package ai.mote.blocking;

import ai.mote.DownloadProgress;
import ai.mote.MoteException;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.List;
import java.util.Map;

/**
 * A file on its way into a store. Until it is closed nobody else downloads to the model; what has come stays, and another
 * download of the same goes on with it. Takes one call at a time.
 */
public final class Download extends Handle {
    /** As in the C API. */
    private static final int CANCELLED = 60;
    private static final int CONNECT_TIMEOUT_MS = 30_000;
    /** A read that stalls is asked for again after it, and a cancel is noticed: no other thread can interrupt it everywhere. */
    private static final int READ_TIMEOUT_MS = 10_000;
    private static final int PIECE_BYTES = 1 << 16;

    private final Object lock = new Object();
    private final byte[] piece = new byte[PIECE_BYTES];
    private volatile boolean isCancelled;
    private volatile HttpURLConnection connection;
    private InputStream body;
    private long waitMs;

    Download(long number) {
        super(Kind.DOWNLOAD, number);
    }

    /** The next piece, or the next step on the way to it. Errors: those of {@link ModelStore#download} */
    public DownloadProgress next() {
        pause();
        if (body != null) {
            receive();
            return progress("");
        }
        String[] step = step();
        if (step == null) {
            return progress("");
        }
        if (!step[0].isEmpty()) {
            ask(step[0], step[1]);
            return progress("");
        }
        waitMs = Long.parseLong(step[2]);
        return progress(step[3]);
    }

    /** From any thread: whether the network is metered now. */
    public native void setMetered(boolean isMetered);

    /** The call that runs, or the next one, is cancelled, a read that stalls within ten seconds. From any thread. */
    public void cancel() {
        synchronized (lock) {
            isCancelled = true;
            lock.notifyAll();
        }
    }

    @Override
    public void close() {
        disconnect();
        super.close();
    }

    private void disconnect() {
        HttpURLConnection current = connection;
        if (current != null) {
            current.disconnect();
        }
    }

    private void pause() {
        long end = System.nanoTime() + waitMs * 1_000_000;
        waitMs = 0;
        synchronized (lock) {
            while (!isCancelled) {
                long left = (end - System.nanoTime() + 999_999) / 1_000_000;
                if (left <= 0) {
                    return;
                }
                try {
                    lock.wait(left);
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                    isCancelled = true;
                }
            }
        }
        throw cancelled();
    }

    private void ask(String url, String headers) {
        try {
            HttpURLConnection asked = (HttpURLConnection) new URL(url).openConnection();
            connection = asked;
            asked.setInstanceFollowRedirects(false);
            asked.setConnectTimeout(CONNECT_TIMEOUT_MS);
            asked.setReadTimeout(READ_TIMEOUT_MS);
            asked.setUseCaches(false);
            for (String line : headers.split("\r\n")) {
                int colon = line.indexOf(": ");
                asked.setRequestProperty(line.substring(0, colon), line.substring(colon + 2));
            }
            if (respond(asked.getResponseCode(), headersOf(asked))) {
                body = asked.getInputStream();
                return;
            }
            over("");
        } catch (IOException error) {
            over(reason(error));
        }
    }

    private static String headersOf(HttpURLConnection answer) {
        StringBuilder lines = new StringBuilder();
        for (Map.Entry<String, List<String>> header : answer.getHeaderFields().entrySet()) {
            for (String value : header.getValue()) {
                if (header.getKey() != null) {
                    lines.append(header.getKey()).append(": ").append(value).append('\n');
                }
            }
        }
        return lines.toString();
    }

    private void receive() {
        int count;
        try {
            count = body.read(piece);
        } catch (IOException error) {
            over(reason(error));
            return;
        }
        if (count < 0) {
            over("");
        } else {
            write(piece, count);
        }
    }

    /** Tells the core that the answer has ended. */
    private void over(String broken) {
        disconnect();
        connection = null;
        body = null;
        if (isCancelled) {
            throw cancelled();
        }
        end(broken);
    }

    private static String reason(IOException error) {
        String message = error.getMessage();
        return message == null || message.isEmpty() ? error.getClass().getSimpleName() : message;
    }

    private static MoteException cancelled() {
        return MoteException.of(CANCELLED, "CANCELLED", "the download was cancelled; what has come stays");
    }

    /** url, headers, milliseconds to wait and why; url "": only to wait; null: done. */
    private native String[] step();

    private native boolean respond(int status, String headers);

    private native void write(byte[] bytes, int count);

    private native void end(String broken);

    private native DownloadProgress progress(String waitsFor);
}
