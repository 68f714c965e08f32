package ai.mote.chat

import ai.mote.Mote
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import kotlin.test.assertFailsWith

class SettingsTest {
    private fun setting(name: String) = SETTINGS.single { it.name == name }

    @Test
    fun areThoseOfTheLibrarysTable() {
        assertEquals(SETTINGS, settingsOf(Mote.describeOptions()))
        assertTrue(SETTINGS.map { it.name }.containsAll(listOf("temperature", "top_p", "seed", "pace", "stop_strings")))
        assertEquals("", setting("seed").default)
        assertEquals(1.0, setting("top_p").maximum)
    }

    @Test
    fun aWrongValueIsAnsweredWithWhatWouldBeAccepted() {
        assertNull(setting("top_p").problem("0.5"))
        assertNull(setting("top_p").problem(""))
        assertEquals("top_p = 2: must be a number, 0..1 (1: off)", setting("top_p").problem("2"))
        for (text in listOf("x", "1.5", "-1", "NaN")) assertTrue(setting("top_k").problem(text) != null, text)
        assertFailsWith<IllegalArgumentException> { ChatSettings(values = mapOf("top_k" to "-1")).options() }
    }

    @Test
    fun becomeOptions() {
        val values = mapOf("temperature" to "0.5", "top_k" to "3", "stop_strings" to "###", "seed" to "", "gone" to "1")
        val expected = "{\"temperature\":0.5,\"top_k\":3,\"stop_strings\":\"###\"}"
        assertEquals("Options $expected", ChatSettings(values = values).options().toString())
    }
}
