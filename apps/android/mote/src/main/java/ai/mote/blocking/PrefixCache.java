package ai.mote.blocking;

import ai.mote.PrefixCacheInfo;

/** Keeps what sessions have computed of texts for others that begin alike. May be used by any number of threads. */
public final class PrefixCache extends Handle {
    static {
        NativeLibrary.load();
    }

    public PrefixCache(long maxBytes) {
        super(Kind.PREFIX_CACHE, open(maxBytes));
    }

    public native void clear();

    public native PrefixCacheInfo info();

    private static native long open(long maxBytes);
}
