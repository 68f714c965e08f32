// swift-tools-version: 6.0
import PackageDescription

// The library, as scripts/swift_package.sh has put it together.
let mote = Context.environment["MOTE_PACKAGE"] ?? "../../../build/swift-package"

let package = Package(
    name: "MoteChat",
    platforms: [.iOS(.v17), .macOS(.v14), .visionOS(.v1)],
    products: [.library(name: "MoteChat", targets: ["MoteChat"])],
    dependencies: [.package(name: "Mote", path: mote)],
    targets: [
        .target(name: "MoteChat", dependencies: [.product(name: "Mote", package: "Mote")]),
        .testTarget(name: "MoteChatTests", dependencies: ["MoteChat", .product(name: "Mote", package: "Mote")]),
    ],
    swiftLanguageModes: [.v6]
)
