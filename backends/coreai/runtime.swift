// Core AI's interface as the functions of runtime.h. Nothing else of Mote names it.
#if canImport(CoreAI)
import CoreAI
import Dispatch
import Foundation
#if canImport(CMote)
import CMote
#endif

struct Refused: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

private final class Outcome<Value>: @unchecked Sendable {
    var work: (() async throws -> Value)?
    var result: Result<Value, any Error>?
}

/// What `work` gives, waited for by a thread that has nothing else to do. What it throws becomes the text of `error`.
private func waiting<Value>(_ error: UnsafePointer<mote_coreai_error>?, _ work: @escaping () async throws -> Value) -> Value? {
    let outcome = Outcome<Value>(), done = DispatchSemaphore(value: 0)
    outcome.work = work
    Task.detached {
        do { outcome.result = .success(try await outcome.work!()) } catch { outcome.result = .failure(error) }
        outcome.work = nil
        done.signal()
    }
    done.wait()
    switch outcome.result! {
    case .success(let value): return value
    case .failure(let failure):
        if let error = error?.pointee {
            let text = (failure as? Refused)?.description ?? failure.localizedDescription
            let bytes = Array(text.utf8.prefix(Int(error.size) - 1)) + [0]
            bytes.withUnsafeBytes { UnsafeMutableRawPointer(error.text).copyMemory(from: $0.baseAddress!, byteCount: bytes.count) }
        }
        return nil
    }
}

private func handle(_ object: AnyObject?) -> UnsafeMutableRawPointer? { object.map { Unmanaged.passRetained($0).toOpaque() } }

private func object<Kind: AnyObject>(_ handle: UnsafeMutableRawPointer?, as _: Kind.Type = Kind.self) -> Kind {
    Unmanaged<Kind>.fromOpaque(handle!).takeUnretainedValue()
}

@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private final class OpenedModel: @unchecked Sendable {
    let model: AIModel
    init(_ model: AIModel) { self.model = model }
}

@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private final class OpenedFunction: @unchecked Sendable {
    let function: InferenceFunction
    init(_ function: InferenceFunction) { self.function = function }

    func descriptor(_ role: Int32, of name: String) -> NDArrayDescriptor? {
        let all = function.descriptor
        let found =
            switch mote_coreai_role(rawValue: .init(role)) {
            case MOTE_COREAI_INPUT: all.inputDescriptor(of: name)
            case MOTE_COREAI_OUTPUT: all.outputDescriptor(of: name)
            default: all.stateDescriptor(of: name)
            }
        if case .ndArray(let descriptor) = found { return descriptor }
        return nil
    }
}

/// Calls on one are made one at a time.
@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private final class HeldArray: @unchecked Sendable {
    var value: NDArray
    let type: NDArray.ScalarType
    init(_ descriptor: NDArrayDescriptor) {
        value = NDArray(descriptor: descriptor)
        type = descriptor.scalarType
    }

    func visit<Element: BitwiseCopyable>(as _: Element.Type, _ visitor: mote_coreai_visitor, _ context: UnsafeMutableRawPointer?) {
        value.mutableView(as: Element.self).withUnsafeMutablePointer { elements, shape, strides in
            let sizes = (0..<shape.count).map { Int64(shape[$0]) }
            visitor(context, elements, sizes, (0..<strides.count).map { Int64(strides[$0]) }, Int32(sizes.count))
        }
    }
}

/// Views of arrays that whoever calls keeps until the run that gets them has ended.
#if compiler(>=6.2)
@_unsafeNonescapableResult
@_lifetime(immortal)
#endif
@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private func views(of arrays: [(name: String, array: HeldArray)]) -> InferenceFunction.MutableViews {
    var views = InferenceFunction.MutableViews()
    for (name, array) in arrays {
        #if compiler(>=6.2)
        views.insert(_overrideLifetime(array.value.mutableRawView(), borrowing: ()), for: name)
        #else
        views.insert(array.value.mutableRawView(), for: name)
        #endif
    }
    return views
}

@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private func options(for units: String) -> SpecializationOptions {
    switch units {
    case "cpu": .cpuOnly
    case "gpu": SpecializationOptions(preferredComputeUnitKind: .gpu)
    case "ane": SpecializationOptions(preferredComputeUnitKind: .neuralEngine)
    default: .default
    }
}

@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private func scalarType(of dtype: Int32) -> NDArray.ScalarType {
    switch mote_coreai_dtype(rawValue: .init(dtype)) {
    case MOTE_COREAI_FLOAT16: .float16
    case MOTE_COREAI_INT32: .int32
    default: .float32
    }
}

@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private func run(_ function: OpenedFunction, _ arguments: [(role: Int32, name: String, array: HeldArray)]) async throws {
    let of = { (role: mote_coreai_role) in
        arguments.filter { $0.role == Int32(role.rawValue) }.map { (name: $0.name, array: $0.array) }
    }
    let inputs = Dictionary(uniqueKeysWithValues: of(MOTE_COREAI_INPUT).map { ($0.name, $0.array.value) })
    _ = try await function.function.run(
        inputs: inputs, states: views(of: of(MOTE_COREAI_STATE)), outputViews: views(of: of(MOTE_COREAI_OUTPUT)))
    withExtendedLifetime(arguments) {}
}

@available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *)
private func table() -> mote_coreai_runtime {
    var table = mote_coreai_runtime()
    table.is_there = { 1 }
    table.open_model = { folder, units, error in
        let url = URL(fileURLWithPath: String(cString: folder!)), units = String(cString: units!)
        return handle(waiting(error) { OpenedModel(try await AIModel(contentsOf: url, options: options(for: units))) })
    }
    table.open_function = { model, name, error in
        let model: OpenedModel = object(model), name = String(cString: name!)
        return handle(
            waiting(error) {
                guard let function = try model.model.loadFunction(named: name) else { throw Refused("it has none of that name") }
                return OpenedFunction(function)
            })
    }
    table.make_array = { function, role, name, dtype, error in
        let function: OpenedFunction = object(function), name = String(cString: name!)
        return handle(
            waiting(error) {
                guard let descriptor = function.descriptor(role, of: name), descriptor.scalarType == scalarType(of: dtype) else {
                    throw Refused("the function has none of that name and dtype")
                }
                return HeldArray(descriptor)
            })
    }
    table.visit = { array, visitor, context in
        let array: HeldArray = object(array)
        guard array.value.mutableRawView().interleaveLayout == nil else { return 0 }
        switch array.type {
        case .float32: array.visit(as: Float.self, visitor!, context)
        case .int32: array.visit(as: Int32.self, visitor!, context)
        #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
        case .float16: array.visit(as: Float16.self, visitor!, context)
        #endif
        default: return 0
        }
        return 1
    }
    table.run = { function, arguments, count, error in
        let function: OpenedFunction = object(function)
        let arguments = UnsafeBufferPointer(start: arguments, count: Int(count)).map {
            (role: $0.role, name: String(cString: $0.name), array: object($0.array, as: HeldArray.self))
        }
        return waiting(error) { try await run(function, arguments) } == nil ? 0 : 1
    }
    table.release = { Unmanaged<AnyObject>.fromOpaque($0!).release() }
    return table
}

/// Where Mote finds all of it; nil: this system is too old.
@_cdecl("mote_coreai_runtime_of_swift")
public func moteCoreAIRuntime() -> UnsafeRawPointer? {
    guard #available(macOS 27.0, iOS 27.0, tvOS 27.0, visionOS 27.0, watchOS 27.0, *) else { return nil }
    let made = UnsafeMutablePointer<mote_coreai_runtime>.allocate(capacity: 1)
    made.initialize(to: table())
    return UnsafeRawPointer(made)
}
#else
@_cdecl("mote_coreai_runtime_of_swift")
public func moteCoreAIRuntime() -> UnsafeRawPointer? { nil }
#endif
