package ai.mote.chat

import ai.mote.JsonText
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Paths
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.util.UUID

/** A chat as the list of chats shows it. model: the path of its file */
class SavedChat(val id: String, var title: String, val model: String, var settings: ChatSettings, val changed: Long = 0)

/**
 * Chats in a folder, one folder each: chat.json and session.mote-session. A file is there whole or not at all. Thread
 * safety: any thread, for different chats.
 */
class ChatStore(private val folder: File) {
    /** The last one changed first. What cannot be read is left out. */
    fun list(): List<SavedChat> =
        folder.listFiles().orEmpty().mapNotNull { read(it.name) }.sortedByDescending { it.changed }

    fun create(model: String, settings: ChatSettings = ChatSettings()): SavedChat =
        SavedChat(UUID.randomUUID().toString(), "", model, settings)

    /** A JSON list; null: the chat was never saved. */
    fun messages(id: String): String? = json(id)?.get("messages")?.toString()

    /** Where the chat's session is, if it was saved. */
    fun sessionFile(id: String): File = File(File(folder, id).apply { mkdirs() }, "session.mote-session")

    /** Errors: IOException */
    fun save(chat: SavedChat, messages: String) {
        val fields = JsonText.of(
            mapOf(
                "title" to chat.title, "model" to chat.model,
                "instructions" to chat.settings.instructions, "values" to chat.settings.values,
            ),
        )
        val file = fileOf(chat.id)
        file.parentFile.mkdirs()
        val part = File(file.path + ".part")
        part.writeText(fields.dropLast(1) + ",\"messages\":$messages}")
        Files.move(Paths.get(part.path), Paths.get(file.path), ATOMIC_MOVE)
    }

    fun delete(id: String) {
        File(folder, id).deleteRecursively()
    }

    private fun fileOf(id: String) = File(File(folder, id), "chat.json")

    private fun json(id: String): JsonObject? = try {
        Json.parseToJsonElement(fileOf(id).readText()) as? JsonObject
    } catch (error: IOException) {
        null
    } catch (error: SerializationException) {
        null
    }

    private fun read(id: String): SavedChat? {
        val json = json(id) ?: return null
        val values = (json["values"] as? JsonObject)?.let { values -> values.keys.associateWith { values.text(it) } }
        val settings = ChatSettings(json.text("instructions"), values.orEmpty())
        return SavedChat(id, json.text("title"), json.text("model"), settings, fileOf(id).lastModified())
    }
}
