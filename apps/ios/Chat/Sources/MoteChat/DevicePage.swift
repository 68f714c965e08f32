import Mote

/// A line of the page about the device.
public struct Fact: Hashable, Sendable {
    public let label: String
    public let value: String
}

/// What this device is, what the library uses of it, and for a model what runs it and why. Errors: `MoteError`
public func deviceFacts(_ model: Model?) throws -> [Fact] {
    let kernels = JSON(try MoteLibrary.describeKernels())
    let build = JSON(try MoteLibrary.describeBuild())
    let device = [
        Fact(label: "CPU", value: kernels["cpu"].text),
        Fact(label: "CPU features", value: kernels["cpu_features"].words),
        Fact(label: "Mote", value: "\(build["version"].text) \(build["commit"].text)"),
        Fact(label: "Backends of this build", value: build["backends"].words),
    ]
    let clusters = kernels["clusters"].list.map { cluster in
        Fact(label: "CPUs \(cluster["cpus"].text)", value: cluster["max_mhz"].text.isEmpty ? "" : "\(cluster["max_mhz"].text) MHz")
    }
    return device + clusters + (try model.map { modelFacts(JSON(try $0.describe()), kernels) } ?? [])
}

private func modelFacts(_ model: JSON, _ kernels: JSON) -> [Fact] {
    let targets = model["targets"].members.map { target in
        Fact(label: "Target \(target.name)", value: target.value.text.isEmpty ? "works here" : target.value.text)
    }
    let choices = kernels["choices"].list.map { choice in
        Fact(label: "\(choice["role"].text) \(choice["weights"].text)", value: "\(choice["kernel"].text): \(choice["reason"].text)")
    }
    return [Fact(label: "Runs on", value: model["target"].text)] + targets + choices
}
