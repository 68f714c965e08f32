package ai.mote.chat

import ai.mote.Mote
import ai.mote.MoteException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import java.io.File
import java.io.InputStream
import java.nio.file.Files
import java.nio.file.Paths
import java.nio.file.StandardCopyOption.ATOMIC_MOVE

/** A model that can be chatted with. bytes: of its file */
data class InstalledModel(val name: String, val path: String, val bytes: Long)

/** The files that were picked, copied into a folder of the app. */
class ModelLibrary(private val folder: File) {
    fun list(): List<InstalledModel> = folder.listFiles { file -> file.name.endsWith(ENDING) }.orEmpty()
        .map { InstalledModel(it.name.removeSuffix(ENDING), it.path, it.length()) }.sortedBy { it.name }

    /**
     * Copies a file that was picked, and looks whether it works on this device. onProgress: told the bytes so far
     * Errors: MoteException with why it does not, and nothing stays behind; IOException
     */
    suspend fun add(name: String, bytes: InputStream, onProgress: (Long) -> Unit = {}): InstalledModel =
        withContext(Dispatchers.IO) {
            folder.mkdirs()
            val part = File.createTempFile("picked", ".part", folder)
            try {
                part.outputStream().use { out ->
                    val buffer = ByteArray(1 shl 20)
                    var sum = 0L
                    while (true) {
                        ensureActive()
                        val count = bytes.read(buffer)
                        if (count < 0) break
                        out.write(buffer, 0, count)
                        sum += count
                        onProgress(sum)
                    }
                }
                reasonAgainst(part.path)?.let { throw MoteException.of(24, "UNSUPPORTED_BACKEND", "$name: $it") }
                val file = File(folder, free(name.removeSuffix(ENDING)) + ENDING)
                Files.move(Paths.get(part.path), Paths.get(file.path), ATOMIC_MOVE)
                InstalledModel(file.name.removeSuffix(ENDING), file.path, file.length())
            } finally {
                part.delete()
            }
        }

    /** Returns whether it was one of these. */
    fun remove(model: InstalledModel): Boolean = File(model.path).parentFile == folder && File(model.path).delete()

    private fun free(name: String): String {
        val plain = name.replace(Regex("[^\\p{L}\\p{N}._ -]"), "_").trimStart('.').ifEmpty { "model" }
        return generateSequence(1) { it + 1 }.map { if (it == 1) plain else "$plain $it" }
            .first { !File(folder, it + ENDING).exists() }
    }

    /** null: it works here. Errors: MoteException for what is no such file */
    private fun reasonAgainst(path: String): String? {
        val description = Json.parseToJsonElement(Mote.describeFile(path)) as JsonObject
        if (description.text("target").isNotEmpty()) return null
        val targets = description["targets"] as JsonObject
        return targets.keys.joinToString("; ") { "$it: ${targets.text(it)}" }
    }

    private companion object {
        const val ENDING = ".mote"
    }
}
