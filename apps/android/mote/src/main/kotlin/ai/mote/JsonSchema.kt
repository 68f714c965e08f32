package ai.mote

import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.descriptors.PolymorphicKind
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.descriptors.SerialKind
import kotlinx.serialization.descriptors.StructureKind
import kotlinx.serialization.descriptors.elementDescriptors

/**
 * The JSON Schema of what kotlinx.serialization writes of a class, with the default Json. Properties with a default may
 * be left out. Errors: IllegalArgumentException naming a type that has no schema: open polymorphism, contextual
 */
public fun jsonSchema(descriptor: SerialDescriptor): Map<String, Any?> {
    val schemas = Schemas()
    val root = schemas.of(descriptor)
    return if (schemas.definitions.isEmpty()) root else root + ("\$defs" to schemas.definitions)
}

@OptIn(ExperimentalSerializationApi::class)
private class Schemas {
    val definitions = LinkedHashMap<String, Map<String, Any?>>()
    private val open = HashSet<String>()
    private val recursive = LinkedHashMap<String, String>()

    fun of(descriptor: SerialDescriptor): Map<String, Any?> {
        val schema = ofValue(descriptor)
        return if (descriptor.isNullable) mapOf("anyOf" to listOf(schema, mapOf("type" to "null"))) else schema
    }

    private fun ofValue(descriptor: SerialDescriptor): Map<String, Any?> =
        if (descriptor.isInline) of(descriptor.getElementDescriptor(0)) else ofKind(descriptor)

    private fun ofKind(descriptor: SerialDescriptor): Map<String, Any?> = when (val kind = descriptor.kind) {
        is PrimitiveKind -> ofPrimitive(kind)
        SerialKind.ENUM -> mapOf("enum" to List(descriptor.elementsCount, descriptor::getElementName))
        StructureKind.LIST -> mapOf("type" to "array", "items" to of(descriptor.getElementDescriptor(0)))
        StructureKind.MAP -> ofMap(descriptor)
        StructureKind.CLASS, StructureKind.OBJECT -> defined(descriptor) { ofProperties(descriptor, null) }
        PolymorphicKind.SEALED -> defined(descriptor) { ofSubclasses(descriptor) }
        else -> throw IllegalArgumentException("${descriptor.serialName}: a value of kind $kind has no JSON Schema")
    }

    private fun ofPrimitive(kind: PrimitiveKind): Map<String, Any?> = when (kind) {
        PrimitiveKind.BOOLEAN -> mapOf("type" to "boolean")
        PrimitiveKind.BYTE -> ofIntegers(Byte.MIN_VALUE, Byte.MAX_VALUE)
        PrimitiveKind.SHORT -> ofIntegers(Short.MIN_VALUE, Short.MAX_VALUE)
        PrimitiveKind.INT -> ofIntegers(Int.MIN_VALUE, Int.MAX_VALUE)
        PrimitiveKind.LONG -> mapOf("type" to "integer")
        PrimitiveKind.FLOAT, PrimitiveKind.DOUBLE -> mapOf("type" to "number")
        PrimitiveKind.CHAR -> mapOf("type" to "string", "minLength" to 1, "maxLength" to 1)
        PrimitiveKind.STRING -> mapOf("type" to "string")
    }

    private fun ofIntegers(minimum: Number, maximum: Number): Map<String, Any?> =
        mapOf("type" to "integer", "minimum" to minimum, "maximum" to maximum)

    private fun ofMap(descriptor: SerialDescriptor): Map<String, Any?> {
        val key = descriptor.getElementDescriptor(0)
        require(key.kind == PrimitiveKind.STRING) { "${descriptor.serialName}: its keys must be text" }
        return mapOf("type" to "object", "additionalProperties" to of(descriptor.getElementDescriptor(1)))
    }

    /** In its place, or once for all places if it holds itself. */
    private fun defined(descriptor: SerialDescriptor, schema: () -> Map<String, Any?>): Map<String, Any?> {
        val name = descriptor.serialName.removeSuffix("?")
        if (!open.add(name)) {
            // By number, since names of classes may have what a reference has to escape.
            return mapOf("\$ref" to "#/\$defs/${recursive.getOrPut(name) { "t${recursive.size}" }}")
        }
        val made = schema()
        open.remove(name)
        val key = recursive[name] ?: return made
        definitions[key] = made
        return mapOf("\$ref" to "#/\$defs/$key")
    }

    /** discriminator: the name that a subclass of a sealed class goes by; null: it is no such */
    private fun ofProperties(descriptor: SerialDescriptor, discriminator: String?): Map<String, Any?> {
        val properties = LinkedHashMap<String, Any?>()
        val required = ArrayList<String>()
        if (discriminator != null) {
            properties["type"] = mapOf("const" to discriminator)
            required += "type"
        }
        for (i in 0 until descriptor.elementsCount) {
            val name = descriptor.getElementName(i)
            properties[name] = of(descriptor.getElementDescriptor(i))
            if (!descriptor.isElementOptional(i)) required += name
        }
        return mapOf(
            "type" to "object", "properties" to properties, "required" to required, "additionalProperties" to false,
        )
    }

    private fun ofSubclasses(descriptor: SerialDescriptor): Map<String, Any?> {
        val subclasses = descriptor.getElementDescriptor(1).elementDescriptors
        return mapOf("anyOf" to subclasses.map { ofProperties(it, it.serialName) })
    }
}
