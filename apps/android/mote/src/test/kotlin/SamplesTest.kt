import ai.mote.KotlinTest
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.PrintStream

class SamplesTest {
    private val folder = File("apps/android/mote")

    @Test
    fun theReadmeShowsTheSamples() {
        val readme = folder.resolve("README.md").readText()
        for (file in listOf("QuickStart.java", "QuickStart.kt")) {
            val sample = folder.resolve("src/samples/$file")
            assertTrue(sample.readText() in readme, "README.md does not show $sample")
        }
    }

    @Test
    fun theSamplesRun() {
        assertTrue("Mote demo" in printed { QuickStart.main(arrayOf(KotlinTest.DEMO)) })
        val kotlin = printed { main(arrayOf(KotlinTest.DEMO)) }
        assertTrue("Mote demo" in kotlin && "Point(x=" in kotlin, kotlin)
    }

    private fun printed(run: () -> Unit): String {
        val out = System.out
        val bytes = ByteArrayOutputStream()
        System.setOut(PrintStream(bytes, true))
        try {
            run()
        } finally {
            System.setOut(out)
        }
        return bytes.toString()
    }
}
