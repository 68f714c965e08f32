package android.content.res;

import android.os.ParcelFileDescriptor;
import java.io.Closeable;
import java.io.IOException;

/** Stands in for Android's. */
public final class AssetFileDescriptor implements Closeable {
    private final ParcelFileDescriptor file;
    private final long offset;
    private final long length;

    public AssetFileDescriptor(ParcelFileDescriptor file, long offset, long length) {
        this.file = file;
        this.offset = offset;
        this.length = length;
    }

    public ParcelFileDescriptor getParcelFileDescriptor() {
        return file;
    }

    public long getStartOffset() {
        return offset;
    }

    public long getDeclaredLength() {
        return length;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
