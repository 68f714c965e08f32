package ai.mote.android;

import android.content.Context;
import android.os.PowerManager;
import android.os.SystemClock;
import java.lang.reflect.Method;

/**
 * How fast a device may go on without getting so hot that the system slows it down: for the option `pace`. Knows nothing
 * before Android 11, and on devices that do not tell.
 */
public final class ThermalPace {
    private static final int FORECAST_SECONDS = 10;
    /** Of the heat at which the system begins to slow things down. */
    private static final float WARM = 0.85f;

    private final PowerManager power;
    private final Method method;
    private long askedAt = -1000;
    private float headroom = Float.NaN;

    public ThermalPace(Context context) {
        power = (PowerManager) context.getSystemService(Context.POWER_SERVICE);
        method = method();
    }

    /**
     * Tokens a second; 0: no limit. tokensPerSecond: what the model did when nothing held it back
     */
    public double of(double tokensPerSecond) {
        return pace(headroom(), tokensPerSecond);
    }

    /** 1: the system slows things down in ten seconds if this goes on; NaN: not known. */
    public synchronized float headroom() {
        long now = SystemClock.elapsedRealtime();
        if (method == null || now - askedAt < 1000) { // who asks more often is told NaN
            return headroom;
        }
        askedAt = now;
        try {
            headroom = (Float) method.invoke(power, FORECAST_SECONDS);
        } catch (ReflectiveOperationException error) {
            headroom = Float.NaN;
        }
        return headroom;
    }

    /** From warm on less and less, down to a half. */
    static double pace(float headroom, double tokensPerSecond) {
        if (!(headroom > WARM)) { // also NaN
            return 0;
        }
        double share = 1 - 0.5 * Math.min(1, (headroom - WARM) / (1 - WARM));
        return Math.max(1, share * tokensPerSecond);
    }

    private static Method method() {
        try {
            return PowerManager.class.getMethod("getThermalHeadroom", int.class);
        } catch (NoSuchMethodException error) {
            return null;
        }
    }
}
