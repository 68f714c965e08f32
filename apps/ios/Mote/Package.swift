// swift-tools-version: 6.0
import PackageDescription

// Beside this file are the sources of the core, where scripts/swift_package.sh has put them.
let core: Target = .target(
    name: "CMote",
    sources: ["units"],
    cSettings: [
        .headerSearchPath("libraries/pcre2"), .headerSearchPath("libraries/utf8proc"), .define("UTF8PROC_STATIC"),
    ],
    cxxSettings: [
        .headerSearchPath("core"), .headerSearchPath("generated"), .headerSearchPath("libraries"),
        .headerSearchPath("libraries/pcre2"), .headerSearchPath("libraries/utf8proc"), .define("PCRE2_STATIC"),
        .define("UTF8PROC_STATIC"),
    ],
    linkerSettings: [
        .linkedFramework("CoreML", .when(platforms: [.iOS, .macOS, .visionOS])),
        .linkedFramework("Foundation", .when(platforms: [.iOS, .macOS, .visionOS])),
    ])

// With MOTE_TEST_SHAPES set, the conformance to FoundationModels is compiled against protocols of the same shape, where Apple's
// framework is not; and there are programs that tests need.
let shapes = Context.environment["MOTE_TEST_SHAPES"] != nil
let shapeTargets: [Target] =
    shapes
    ? [
        .target(name: "FoundationModels", path: "Tests/FoundationModels"),
        .testTarget(
            name: "MoteFoundationModelsTests", dependencies: ["MoteFoundationModels", "FoundationModels", "Mote"],
            swiftSettings: [.define("MOTE_TEST_SHAPES")]),
        .executableTarget(name: "mote-bench", dependencies: ["Mote", "CMote"], path: "Tests/Bench"),
        .executableTarget(name: "mote-pull", dependencies: ["Mote"], path: "Tests/Pull"),
    ] : []

let package = Package(
    name: "Mote",
    platforms: [.iOS(.v15), .macOS(.v12), .visionOS(.v1)],
    products: [
        .library(name: "Mote", targets: ["Mote"]),
        .library(name: "MoteFoundationModels", targets: ["MoteFoundationModels"]),
    ],
    targets: [
        core,
        // What calls Core AI, where the SDK has it: scripts/make_swift_package.py puts it there.
        .target(name: "MoteCoreAI", dependencies: ["CMote"], swiftSettings: [.enableExperimentalFeature("Lifetimes")]),
        .target(name: "Mote", dependencies: ["CMote", "MoteCoreAI"], resources: [.copy("PrivacyInfo.xcprivacy")]),
        .target(
            name: "MoteFoundationModels", dependencies: ["Mote"] + (shapes ? ["FoundationModels"] : []),
            swiftSettings: shapes ? [.define("MOTE_TEST_SHAPES")] : []),
        .testTarget(name: "MoteTests", dependencies: ["Mote"]),
    ] + shapeTargets,
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20
)
