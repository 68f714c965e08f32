package ai.mote.chat.ui

import ai.mote.chat.R
import ai.mote.chat.Transfer
import android.app.Notification
import android.app.NotificationManager
import android.app.PendingIntent
import android.content.Context
import android.content.Intent
import android.os.IBinder
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

/** Keeps the process at work while a file comes: a notification with how far it is and a button that stops it. */
class DownloadService : LimitedService() {
    private var watching: Job? = null

    override fun onBind(intent: Intent): IBinder? = null

    override fun onStartCommand(intent: Intent?, flags: Int, startId: Int): Int {
        if (intent?.action == STOP) app.models.stop()
        startForeground(ID, notification(app.models.state.value.transfer ?: Transfer("")))
        if (watching == null) watching = app.scope.launch { app.models.state.collect { show(it.transfer) } }
        return START_NOT_STICKY
    }

    override fun onDestroy() {
        watching?.cancel()
        super.onDestroy()
    }

    override fun onTimeIsOver() {
        app.models.stop()
        stopSelf()
    }

    private var shown: Int? = -1

    private fun show(transfer: Transfer?) {
        if (transfer == null) return stopSelf()
        if (transfer.percent == shown) return // Android drops what comes too often
        shown = transfer.percent
        notifications.notify(ID, notification(transfer))
    }

    private fun notification(transfer: Transfer): Notification {
        val stop = PendingIntent.getService(this, 0, Intent(this, javaClass).setAction(STOP), FLAG_IMMUTABLE)
        val open = PendingIntent.getActivity(this, 0, Intent(this, ModelsActivity::class.java), FLAG_IMMUTABLE)
        val builder = Notification.Builder(this).setSmallIcon(android.R.drawable.stat_sys_download)
            .setContentTitle(getString(R.string.downloading, transfer.what)).setContentIntent(open).setOngoing(true)
            .setProgress(100, transfer.percent ?: 0, transfer.percent == null)
            .addAction(Notification.Action.Builder(null, getString(R.string.stop), stop).build())
        setChannel(builder)
        return builder.build()
    }

    /** By reflection: Android 8 came with channels, and this is compiled with an older API too. */
    private fun setChannel(builder: Notification.Builder) {
        val type = Class.forName("android.app.NotificationChannel")
        val channel = type.getConstructor(String::class.java, CharSequence::class.java, Int::class.javaPrimitiveType)
            .newInstance(CHANNEL, getString(R.string.downloads), IMPORTANCE_LOW)
        NotificationManager::class.java.getMethod("createNotificationChannel", type).invoke(notifications, channel)
        Notification.Builder::class.java.getMethod("setChannelId", String::class.java).invoke(builder, CHANNEL)
    }

    private val notifications get() = getSystemService(Context.NOTIFICATION_SERVICE) as NotificationManager

    private companion object {
        const val ID = 1
        const val STOP = "stop"
        const val CHANNEL = "downloads"
        const val IMPORTANCE_LOW = 2
        const val FLAG_IMMUTABLE = 1 shl 26
    }
}
