package ai.mote.chat.ui;

import android.app.Service;

/** A service in the foreground that Android 15 ends after some hours. In Java, which takes it with and without that in its API. */
public abstract class LimitedService extends Service {
    /** Must end it within seconds. */
    protected abstract void onTimeIsOver();

    public void onTimeout(int startId, int type) {
        onTimeIsOver();
    }
}
