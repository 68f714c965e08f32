// What backends/coreai/runtime.swift uses of Apple's Core AI, written after its documentation. Functions are computed by
// fake_coreai.cpp, in whose program this is loaded; arrays have rows that are longer than they need.
import Foundation

public struct CoreAIError: LocalizedError {
    public let errorDescription: String?
}

public enum ComputeUnitKind: Sendable { case cpu, gpu, neuralEngine }

public struct SpecializationOptions: Sendable {
    public static let `default` = SpecializationOptions(units: "all")
    public static let cpuOnly = SpecializationOptions(units: "cpu")
    let units: String
    init(units: String) { self.units = units }
    public init(preferredComputeUnitKind kind: ComputeUnitKind) { units = kind == .gpu ? "gpu" : "ane" }
}

public struct Span<Element> {
    let elements: [Element]
    public var count: Int { elements.count }
    public subscript(_ index: Int) -> Element { elements[index] }
}

final class Storage {
    let bytes: UnsafeMutableRawPointer
    init(_ count: Int) {
        bytes = .allocate(byteCount: count, alignment: 64)
        bytes.initializeMemory(as: UInt8.self, repeating: 0xee, count: count)
    }
    deinit { bytes.deallocate() }
}

public struct NDArrayDescriptor: Sendable {
    public let shape: [Int]
    public let scalarType: NDArray.ScalarType
}

public struct NDArray: @unchecked Sendable {
    public enum ScalarType: Int32, Sendable { case float32, float16, int32, bfloat16 }
    public struct InterleaveLayout: Equatable {}

    public let shape: [Int]
    public let strides: [Int]
    public let scalarType: ScalarType
    let storage: Storage

    public init(descriptor: NDArrayDescriptor) {
        shape = descriptor.shape
        scalarType = descriptor.scalarType
        var strides = [Int](repeating: 1, count: shape.count), size = 1
        for axis in shape.indices.reversed() {
            strides[axis] = size
            size *= shape[axis]
            if axis == shape.count - 1 && axis > 0 { size += 3 }
        }
        self.strides = strides
        storage = Storage(size * 4)
    }

    public struct MutableView<Element: BitwiseCopyable>: ~Copyable {
        let array: NDArray
        public func withUnsafeMutablePointer<R>(
            _ body: (UnsafeMutablePointer<Element>, Span<Int>, Span<Int>) throws -> R
        ) rethrows -> R {
            try body(
                array.storage.bytes.assumingMemoryBound(to: Element.self), Span(elements: array.shape), Span(elements: array.strides))
        }
    }
    public struct MutableRawView: ~Copyable {
        let array: NDArray
        public var interleaveLayout: InterleaveLayout? { nil }
    }

    public mutating func mutableView<T: BitwiseCopyable>(as _: T.Type = T.self) -> MutableView<T> {
        precondition(MemoryLayout<T>.size == (scalarType == .float16 ? 2 : 4))
        return MutableView(array: self)
    }
    public mutating func mutableRawView() -> MutableRawView { MutableRawView(array: self) }
}

public enum InferenceValue {
    public enum Descriptor: Sendable {
        case ndArray(NDArrayDescriptor)
        case image
    }
}

@_silgen_name("fake_coreai_open")
func fakeOpen(_ folder: UnsafePointer<CChar>, _ units: UnsafePointer<CChar>, _ error: UnsafeMutablePointer<CChar>, _ size: Int32)
    -> UnsafeMutableRawPointer?
@_silgen_name("fake_coreai_close")
func fakeClose(_ model: UnsafeMutableRawPointer)
@_silgen_name("fake_coreai_function")
func fakeFunction(_ model: UnsafeMutableRawPointer, _ name: UnsafePointer<CChar>) -> Int32
@_silgen_name("fake_coreai_describe")
func fakeDescribe(
    _ model: UnsafeMutableRawPointer, _ function: Int32, _ role: Int32, _ name: UnsafePointer<CChar>, _ dtype: UnsafeMutablePointer<Int32>,
    _ shape: UnsafeMutablePointer<Int64>
) -> Int32
@_silgen_name("fake_coreai_give")
func fakeGive(
    _ model: UnsafeMutableRawPointer, _ function: Int32, _ role: Int32, _ name: UnsafePointer<CChar>, _ bytes: UnsafeMutableRawPointer,
    _ strides: UnsafePointer<Int64>)
@_silgen_name("fake_coreai_compute")
func fakeCompute(_ model: UnsafeMutableRawPointer, _ function: Int32, _ error: UnsafeMutablePointer<CChar>, _ size: Int32) -> Int32

func said(_ call: (UnsafeMutablePointer<CChar>, Int32) -> Bool) throws {
    try withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
        if !call(text.baseAddress!, 512) { throw CoreAIError(errorDescription: String(cString: text.baseAddress!)) }
    }
}

final class Loaded: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
    init(_ handle: UnsafeMutableRawPointer) { self.handle = handle }
    deinit { fakeClose(handle) }
}

public struct AIModel: Sendable {
    let loaded: Loaded

    public init(contentsOf url: URL, options: SpecializationOptions = .default) async throws {
        await Task.yield()
        var handle: UnsafeMutableRawPointer?
        try said { text, size in
            handle = fakeOpen(url.path, options.units, text, size)
            return handle != nil
        }
        loaded = Loaded(handle!)
    }

    public func loadFunction(named name: String) throws -> InferenceFunction? {
        let index = fakeFunction(loaded.handle, name)
        return index < 0 ? nil : InferenceFunction(descriptor: InferenceFunctionDescriptor(name: name, loaded: loaded, index: index))
    }
}

public struct InferenceFunctionDescriptor: Sendable {
    public let name: String
    let loaded: Loaded
    let index: Int32

    func describe(_ role: Int32, _ name: String) -> InferenceValue.Descriptor? {
        var dtype: Int32 = 0, shape = [Int64](repeating: 0, count: 8)
        let rank = fakeDescribe(loaded.handle, index, role, name, &dtype, &shape)
        guard rank >= 0 else { return nil }
        return .ndArray(NDArrayDescriptor(shape: shape.prefix(Int(rank)).map { Int($0) }, scalarType: .init(rawValue: dtype)!))
    }
    public func inputDescriptor(of name: String) -> InferenceValue.Descriptor? { describe(0, name) }
    public func outputDescriptor(of name: String) -> InferenceValue.Descriptor? { describe(1, name) }
    public func stateDescriptor(of name: String) -> InferenceValue.Descriptor? { describe(2, name) }
}

public struct InferenceFunction: Sendable {
    public let descriptor: InferenceFunctionDescriptor

    public struct Outputs: ~Copyable {}
    public struct MutableViews: ~Copyable {
        var arrays: [(name: String, array: NDArray)] = []
        public init() {}
        public mutating func insert(_ view: consuming NDArray.MutableRawView, for name: String) { arrays.append((name, view.array)) }
    }

    public func run(
        inputs: [String: NDArray], states: consuming MutableViews = MutableViews(), outputViews: consuming MutableViews = MutableViews()
    ) async throws -> Outputs {
        await Task.yield()
        give(0, inputs.map { (name: $0.key, array: $0.value) })
        give(1, outputViews.arrays)
        give(2, states.arrays)
        try said { text, size in fakeCompute(descriptor.loaded.handle, descriptor.index, text, size) != 0 }
        return Outputs()
    }

    func give(_ role: Int32, _ arrays: [(name: String, array: NDArray)]) {
        for (name, array) in arrays {
            fakeGive(descriptor.loaded.handle, descriptor.index, role, name, array.storage.bytes, array.strides.map { Int64($0) })
        }
    }
}
