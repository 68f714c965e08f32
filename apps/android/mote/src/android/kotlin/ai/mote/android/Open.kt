package ai.mote.android

import ai.mote.Model
import ai.mote.Options
import ai.mote.openedModel
import android.content.Context
import android.content.res.AssetFileDescriptor
import android.net.Uri
import android.os.ParcelFileDescriptor

/** What a Uri leads to. Errors: those of [ModelFiles.open] */
public suspend fun Model.Companion.open(
    context: Context,
    uri: Uri,
    options: Options = Options.NONE,
    onProgress: (Double) -> Unit = {},
): Model = openedModel(onProgress) { ModelFiles.open(context.contentResolver, uri, options, it) }

/** An asset that is stored without compression, in the app or in a pack. */
public suspend fun Model.Companion.open(
    asset: AssetFileDescriptor,
    options: Options = Options.NONE,
    onProgress: (Double) -> Unit = {},
): Model = openedModel(onProgress) { ModelFiles.open(asset, options, it) }

/** length: -1: to the end */
public suspend fun Model.Companion.open(
    file: ParcelFileDescriptor,
    offset: Long = 0,
    length: Long = -1,
    options: Options = Options.NONE,
    onProgress: (Double) -> Unit = {},
): Model = openedModel(onProgress) { ModelFiles.open(file, offset, length, options, it) }
