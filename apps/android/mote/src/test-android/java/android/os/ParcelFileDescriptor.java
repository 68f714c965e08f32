package android.os;

import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.lang.reflect.Field;

/** Stands in for Android's. */
public final class ParcelFileDescriptor implements Closeable {
    private final FileInputStream stream;

    public ParcelFileDescriptor(File file) throws IOException {
        stream = new FileInputStream(file);
    }

    public int getFd() {
        try {
            Field number = FileDescriptor.class.getDeclaredField("fd");
            number.setAccessible(true);
            return number.getInt(stream.getFD());
        } catch (ReflectiveOperationException | IOException error) {
            throw new IllegalStateException(error);
        }
    }

    public boolean isOpen() {
        return stream.getChannel().isOpen();
    }

    @Override
    public void close() throws IOException {
        stream.close();
    }
}
