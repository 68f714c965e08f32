package ai.mote.chat

import ai.mote.Model
import ai.mote.Mote
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** A line of the page about the device. */
data class Fact(val label: String, val value: String)

/** What this device is, what the library uses of it, and for a model what runs it and why. */
fun deviceFacts(model: Model?): List<Fact> {
    val kernels = parse(Mote.describeKernels())
    val build = parse(Mote.describeBuild())
    return listOf(
        Fact("CPU", kernels.text("cpu")),
        *(kernels["clusters"] as JsonArray).map { cluster(it as JsonObject) }.toTypedArray(),
        Fact("CPU features", kernels["cpu_features"].words()),
        Fact("Mote", "${build.text("version")} ${build.text("commit")}"),
        Fact("Backends of this build", build["backends"].words()),
    ) + if (model == null) emptyList() else modelFacts(parse(model.describe()), kernels)
}

private fun modelFacts(model: JsonObject, kernels: JsonObject): List<Fact> {
    val targets = model["targets"] as JsonObject
    val choices = (kernels["choices"] as? JsonArray).orEmpty().map { it as JsonObject }
    return listOf(Fact("Runs on", model.text("target"))) +
        targets.keys.map { Fact("Target $it", targets.text(it).ifEmpty { "works here" }) } +
        choices.map { Fact("${it.text("role")} ${it.text("weights")}", "${it.text("kernel")}: ${it.text("reason")}") }
}

private fun cluster(cluster: JsonObject) =
    Fact("CPUs ${cluster.text("cpus")}", cluster.text("max_mhz").let { if (it.isEmpty()) "" else "$it MHz" })

private fun JsonElement?.words(): String = (this as? JsonArray).orEmpty().joinToString(" ") { it.toString().trim('"') }

private fun parse(json: String) = Json.parseToJsonElement(json) as JsonObject
