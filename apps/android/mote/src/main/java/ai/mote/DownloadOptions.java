package ai.mote;

/** How a file is downloaded. Unchangeable: each `with...` gives another one. */
public final class DownloadOptions {
    public static final DownloadOptions NONE = new DownloadOptions(null, null, null, false, -1);

    private final String endpoint;
    private final String token;
    private final String sha256;
    private final boolean allowMetered;
    private final long keepFreeBytes;

    private DownloadOptions(String endpoint, String token, String sha256, boolean allowMetered, long keepFreeBytes) {
        this.endpoint = endpoint;
        this.token = token;
        this.sha256 = sha256;
        this.allowMetered = allowMetered;
        this.keepFreeBytes = keepFreeBytes;
    }

    /** Another hub than https://huggingface.co. */
    public DownloadOptions withEndpoint(String url) {
        return new DownloadOptions(url, token, sha256, allowMetered, keepFreeBytes);
    }

    /** For models of the hub that are private or gated, or for the server of an URL. */
    public DownloadOptions withToken(String newToken) {
        return new DownloadOptions(endpoint, newToken, sha256, allowMetered, keepFreeBytes);
    }

    /** Of the file at an URL, in hexadecimal digits; the hub has its own. */
    public DownloadOptions withSha256(String hash) {
        return new DownloadOptions(endpoint, token, hash, allowMetered, keepFreeBytes);
    }

    /** A file may come over a metered network too. */
    public DownloadOptions allowingMetered() {
        return new DownloadOptions(endpoint, token, sha256, true, keepFreeBytes);
    }

    /** That stay free on the disk; else 64 MiB. */
    public DownloadOptions withKeepFreeBytes(long bytes) {
        return new DownloadOptions(endpoint, token, sha256, allowMetered, bytes);
    }
}
