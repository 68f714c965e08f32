package ai.mote.chat

/** What a device says about how fast a reply may be written, and wants to know of it. Speeds are in tokens a second. */
interface Device {
    /** The speed that it can go on with; 0: no limit. tokensPerSecond: that of a reply that nothing held back */
    fun pace(tokensPerSecond: Double): Double = 0.0

    /** For one reply, closed at its end; null: it takes none. tokensPerSecond: what the reply should have */
    fun hints(tokensPerSecond: Double): Hints? = null
}

interface Hints : AutoCloseable {
    /** How long a token took. */
    fun report(nanoseconds: Long)
}

/**
 * How long each token of a reply took, the first ones excepted: by how far its session has come at each event, of which
 * a token may have several or none. now: nanoseconds of a clock that only goes forward
 */
internal class TokenTimes(
    private val position: () -> Long,
    private val report: (Long) -> Unit,
    private val now: () -> Long = System::nanoTime,
) {
    private var last = -1L
    private var since = 0L

    fun mark() {
        val reached = position()
        if (reached == last) return
        val time = now()
        if (last >= 0 && reached > last) report((time - since) / (reached - last))
        last = reached
        since = time
    }
}
