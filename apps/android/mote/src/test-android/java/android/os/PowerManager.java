package android.os;

/** Stands in for Android's, of a device that tells how warm it is. */
public final class PowerManager {
    public float headroom;
    public int asked;

    public float getThermalHeadroom(int forecastSeconds) {
        asked++;
        return headroom;
    }
}
