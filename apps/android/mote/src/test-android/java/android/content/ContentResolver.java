package android.content;

import android.content.res.AssetFileDescriptor;
import android.net.Uri;
import java.io.FileNotFoundException;

/** Stands in for Android's: a provider answers. */
public abstract class ContentResolver {
    public abstract AssetFileDescriptor openAssetFileDescriptor(Uri uri, String mode) throws FileNotFoundException;
}
