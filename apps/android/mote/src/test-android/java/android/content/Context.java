package android.content;

import java.util.Map;

/** Stands in for Android's: a device has some services. */
public class Context {
    public static final String POWER_SERVICE = "power";

    private final Map<String, Object> services;

    public Context(Map<String, Object> services) {
        this.services = services;
    }

    public Object getSystemService(String name) {
        return services.get(name);
    }

    public ContentResolver getContentResolver() {
        throw new UnsupportedOperationException();
    }
}
