package android.net;

/** Stands in for Android's. */
public final class Uri {
    private final String text;

    public Uri(String text) {
        this.text = text;
    }

    @Override
    public String toString() {
        return text;
    }
}
