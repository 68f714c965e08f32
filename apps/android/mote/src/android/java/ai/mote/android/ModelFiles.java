package ai.mote.android;

import ai.mote.FileException;
import ai.mote.MoteException;
import ai.mote.Options;
import ai.mote.ProgressListener;
import ai.mote.blocking.Model;
import android.content.ContentResolver;
import android.content.res.AssetFileDescriptor;
import android.net.Uri;
import android.os.ParcelFileDescriptor;
import java.io.FileNotFoundException;
import java.io.IOException;

/**
 * Models that an app is given otherwise than by a path. Descriptors may be closed after the call; nothing is written and
 * no path is opened, so that an isolated process may do it too. Errors: those of {@link Model#open(String)}.
 */
public final class ModelFiles {
    private ModelFiles() {}

    /**
     * What a Uri leads to, such as one of ACTION_OPEN_DOCUMENT. Messages name it.
     * Errors: also {@link FileException} where there is no permission, or no regular file behind it: a provider that has
     * the bytes from a network gives a pipe.
     */
    public static Model open(ContentResolver resolver, Uri uri, Options options, ProgressListener progress) {
        try (AssetFileDescriptor file = resolver.openAssetFileDescriptor(uri, "r")) {
            if (file == null) {
                throw unreadable(uri, "its provider gives no file: copy the model into a file of the app");
            }
            return open(file, options.with("name", uri.toString()), progress);
        } catch (FileNotFoundException error) {
            throw MoteException.of(10, "FILE_NOT_FOUND", uri + ": cannot be opened: " + error.getMessage());
        } catch (SecurityException error) {
            throw unreadable(uri, "the app has no permission: " + error.getMessage());
        } catch (IOException error) {
            throw unreadable(uri, error.getMessage());
        }
    }

    /** An asset that is stored without compression, in the app or in a pack. */
    public static Model open(AssetFileDescriptor asset, Options options, ProgressListener progress) {
        return open(asset.getParcelFileDescriptor(), asset.getStartOffset(), asset.getDeclaredLength(), options, progress);
    }

    /** length: -1: to the end */
    public static Model open(ParcelFileDescriptor file, long offset, long length, Options options,
            ProgressListener progress) {
        return Model.open(file.getFd(), offset, length, options, progress);
    }

    private static MoteException unreadable(Uri uri, String why) {
        return MoteException.of(11, "FILE_UNREADABLE", uri + ": cannot be read: " + why);
    }
}
