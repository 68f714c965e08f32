package ai.mote.android;

import ai.mote.blocking.Handle;
import ai.mote.blocking.Model;
import ai.mote.blocking.PrefixCache;
import android.content.ComponentCallbacks2;
import android.content.res.Configuration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * Gives memory back when Android asks for it: what prefix caches hold, then the pages of model files. Sessions keep what
 * they have. For Context.registerComponentCallbacks. Thread safety: any thread.
 */
public final class MemoryTrimmer implements ComponentCallbacks2 {
    private final List<Model> models = new ArrayList<>();
    private final List<PrefixCache> caches = new ArrayList<>();

    /** Until it is closed. */
    public synchronized void add(Model model) {
        models.add(model);
    }

    /** Until it is closed. */
    public synchronized void add(PrefixCache cache) {
        caches.add(cache);
    }

    /** On a thread of its own: to write off the pages of a large file takes longer than the main thread may. */
    @Override
    public void onTrimMemory(final int level) {
        new Thread("mote-trim") {
            @Override
            public void run() {
                trim(level);
            }
        }.start();
    }

    /** level: of {@link ComponentCallbacks2} */
    synchronized void trim(int level) {
        dropClosed(models);
        dropClosed(caches);
        try {
            if (dropsCaches(level)) {
                for (PrefixCache cache : caches) {
                    cache.clear();
                }
            }
            if (dropsPages(level)) {
                for (Model model : models) {
                    model.releasePages();
                }
            }
        } catch (IllegalStateException error) {
            trim(level); // one was closed a moment ago
        }
    }

    private static void dropClosed(List<? extends Handle> handles) {
        for (Iterator<? extends Handle> i = handles.iterator(); i.hasNext();) {
            if (i.next().isClosed()) {
                i.remove();
            }
        }
    }

    /** While the app is seen only if memory is low. */
    static boolean dropsCaches(int level) {
        return level >= TRIM_MEMORY_RUNNING_LOW;
    }

    /** Else a reply would have to wait for the file. */
    static boolean dropsPages(int level) {
        return level == TRIM_MEMORY_RUNNING_CRITICAL || level >= TRIM_MEMORY_BACKGROUND;
    }

    @Override
    public void onConfigurationChanged(Configuration configuration) {}

    @Override
    public void onLowMemory() {
        onTrimMemory(TRIM_MEMORY_COMPLETE);
    }
}
