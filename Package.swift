// swift-tools-version: 6.2

import PackageDescription

// Targets are listed bottom-up: a target may depend only on targets above it in this list.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// Code that accesses memory by address must be marked `unsafe`, except in tests.
let strictSettings = settings + [.strictMemorySafety()]

let package = Package(
  name: "sluice",
  products: [
    .library(name: "PortableCombine", targets: ["PortableCombine"]),
    .library(name: "CombineExtras", targets: ["CombineExtras"]),
    .library(name: "SluiceClient", targets: ["SluiceClient", "SluiceClientFoundation"]),
    .library(
      name: "SluiceBroker", targets: ["SluiceBroker", "SluiceTopics", "SluiceStore", "SluiceStoreLMDB"]),
    // For tests of programs that embed a broker or a client.
    .library(name: "SluiceSimulation", targets: ["SluiceSimulation"]),
    .executable(name: "sluiced", targets: ["SluiceDaemon"]),
    .executable(name: "sluice", targets: ["SluiceTool"]),
  ],
  targets: [
    // epoll, eventfd, signalfd: missing from the toolchain's Glibc overlay.
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CMalloc", path: "Tests/CMalloc"),
    // The durable store's engine, and its checksums.
    .systemLibrary(name: "CLMDB", providers: [.apt(["liblmdb-dev"])]),
    .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
    // TLS, and the cryptography of passwords and tokens.
    .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
    // Compression of WebSocket messages.
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
    // Reads the configuration file with toml++, a header-only library.
    .target(name: "CTOML"),

    // Our Combine, its parts that need Dispatch and Foundation, and the name under which a program imports both.
    .target(name: "ReactiveCore", dependencies: ["CLinux"], swiftSettings: strictSettings),
    .target(name: "ReactiveFoundation", dependencies: ["ReactiveCore"], swiftSettings: strictSettings),
    .target(
      name: "PortableCombine", dependencies: ["ReactiveCore", "ReactiveFoundation"],
      swiftSettings: strictSettings),
    // Publishers, subjects and subscribers that Combine doesn't have. A module of its own, so that its names can't collide with
    // those of a program that imports PortableCombine.
    .target(name: "CombineExtras", dependencies: ["PortableCombine"], swiftSettings: strictSettings),

    // The protocol, the log, storage, the event loops.
    .target(name: "SluiceWire", swiftSettings: strictSettings),
    .target(name: "SluiceLog", dependencies: ["SluiceWire"], swiftSettings: strictSettings),
    // The two sides of the protocol as values, without sockets: a frame in, an action out. A broker may speak as a client too.
    .target(name: "SluiceSession", dependencies: ["SluiceWire"], swiftSettings: strictSettings),
    // The server's halves of other protocols, as values without sockets: bytes and events in, bytes and actions out.
    .target(name: "SluiceHTTP", swiftSettings: strictSettings),
    .target(name: "SluiceWebSocket", dependencies: ["SluiceHTTP", "CZlib"], swiftSettings: strictSettings),
    .target(name: "SluiceMQTT", dependencies: ["SluiceWire"], swiftSettings: strictSettings),
    .target(name: "SluiceStore", dependencies: ["SluiceWire", "CXXHash"], swiftSettings: strictSettings),
    // The embedded engine. Programs choose it; the broker uses only the engine's protocol.
    .target(
      name: "SluiceStoreLMDB", dependencies: ["SluiceStore", "SluiceWire", "CLMDB", "CXXHash"],
      swiftSettings: strictSettings),
    .target(name: "SluiceIO", dependencies: ["CLinux"], swiftSettings: strictSettings),
    // The same loops and network in simulated time, in one thread and from a seed. For tests and
    // benchmarks: no other product contains it.
    .target(name: "SluiceSimulation", dependencies: ["SluiceIO"], swiftSettings: strictSettings),
    // The only target that uses OpenSSL: TLS as a byte stream, hashes and signatures.
    .target(name: "SluiceTLS", dependencies: ["SluiceIO", "COpenSSL"], swiftSettings: strictSettings),
    // The client of NATS and JetStream, the engine that stores the topics of a cluster.
    .target(
      name: "SluiceNATS", dependencies: ["SluiceIO", "SluiceTLS"], swiftSettings: strictSettings),
    // Access control: users, tokens, permissions.
    .target(
      name: "SluiceAccess", dependencies: ["SluiceWire", "SluiceIO", "SluiceTLS"],
      swiftSettings: strictSettings),

    // Topics with their flow control, groups, cursors, readers and commits: no sockets and no connections.
    .target(
      name: "SluiceTopics",
      dependencies: ["SluiceWire", "SluiceLog", "SluiceSession", "SluiceStore", "SluiceIO", "CXXHash"],
      swiftSettings: strictSettings),
    // The broker and the client, as libraries.
    .target(
      name: "SluiceBroker",
      dependencies: [
        "SluiceTopics", "SluiceWire", "SluiceLog", "SluiceSession", "SluiceStore", "SluiceIO", "SluiceAccess",
      ],
      swiftSettings: strictSettings),
    // Clusters: shards of topics stored on JetStream, and the broker as a node.
    .target(
      name: "SluiceCluster",
      dependencies: ["SluiceBroker", "SluiceTopics", "SluiceWire", "SluiceStore", "SluiceIO", "SluiceNATS"],
      swiftSettings: strictSettings),
    .target(
      name: "SluiceClient",
      dependencies: ["ReactiveCore", "SluiceWire", "SluiceSession", "SluiceIO", "SluiceTLS"],
      swiftSettings: strictSettings),
    // Values as JSON, for programs that use Foundation anyway.
    .target(
      name: "SluiceClientFoundation",
      dependencies: ["SluiceClient", "ReactiveCore", "ReactiveFoundation", "SluiceWire"],
      swiftSettings: strictSettings),

    // The programs, and the code that their command lines share.
    .target(name: "SluiceCommand", dependencies: ["SluiceIO", "SluiceWire"], swiftSettings: strictSettings),
    // Gateways: clients of other protocols as streams of the native protocol.
    .target(
      name: "SluiceDoors",
      dependencies: [
        "SluiceCommand", "SluiceAccess", "SluiceHTTP", "SluiceWebSocket", "SluiceMQTT", "SluiceSession",
        "SluiceWire", "SluiceTLS", "SluiceIO",
      ],
      swiftSettings: strictSettings),
    // The broker's metrics, its API and its page, over HTTP.
    .target(
      name: "SluiceAdmin",
      dependencies: [
        "SluiceCommand", "SluiceBroker", "SluiceAccess", "SluiceStore", "SluiceTLS", "SluiceHTTP",
        "SluiceMQTT", "SluiceIO", "SluiceWire",
      ],
      // The page is embedded in the code, so that the program stays one file.
      resources: [.embedInCode("Dashboard/Page")],
      swiftSettings: strictSettings),
    .executableTarget(
      name: "SluiceDaemon",
      dependencies: [
        "SluiceCommand", "SluiceAdmin", "SluiceCluster", "SluiceNATS", "SluiceBroker", "SluiceAccess",
        "SluiceStore", "SluiceStoreLMDB", "SluiceDoors", "SluiceTLS", "SluiceIO", "SluiceWire", "CLinux",
        "CTOML",
      ],
      swiftSettings: strictSettings),
    .executableTarget(
      name: "SluiceTool",
      dependencies: [
        "SluiceCommand", "SluiceClient", "SluiceAccess", "SluiceStore", "SluiceStoreLMDB", "SluiceTLS",
        "SluiceMQTT", "ReactiveCore", "SluiceIO", "SluiceWire",
      ],
      swiftSettings: strictSettings),
    // Examples to read and to run: swift run Ticker.
    .executableTarget(
      name: "Ticker", dependencies: ["SluiceClient", "PortableCombine"], path: "Sources/Examples/Ticker",
      swiftSettings: settings),
    .executableTarget(
      name: "WorkQueue", dependencies: ["SluiceClient", "PortableCombine"],
      path: "Sources/Examples/WorkQueue",
      swiftSettings: settings),
    .executableTarget(
      name: "Chat", dependencies: ["SluiceClient", "PortableCombine"], path: "Sources/Examples/Chat",
      swiftSettings: settings),
    .executableTarget(
      name: "BackPressure", dependencies: ["SluiceClient", "PortableCombine"],
      path: "Sources/Examples/BackPressure", swiftSettings: settings),

    // Runs the scenarios of Clients/conformance with SluiceClient: scripts/conformance.sh swift.
    .executableTarget(
      name: "ConformanceDriver", dependencies: ["SluiceClient", "PortableCombine"],
      path: "Clients/conformance/drivers/swift", swiftSettings: settings),

    // Tests: a folder for each module, and shared helpers.
    .target(
      name: "TestSupport", dependencies: ["SluiceWire", "SluiceIO"], path: "Tests/TestSupport",
      swiftSettings: settings),
    .target(
      name: "ReactiveTestSupport", dependencies: ["ReactiveCore"], path: "Tests/ReactiveTestSupport",
      swiftSettings: settings),
    .testTarget(
      name: "ReactiveCoreTests", dependencies: ["ReactiveCore", "ReactiveTestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "ReactiveFoundationTests",
      dependencies: ["ReactiveFoundation", "ReactiveCore", "ReactiveTestSupport"], swiftSettings: settings),
    .testTarget(
      name: "PortableCombineTests",
      dependencies: ["PortableCombine", "ReactiveCore", "ReactiveFoundation", "ReactiveTestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "CombineExtrasTests",
      dependencies: [
        "CombineExtras", "PortableCombine", "ReactiveCore", "ReactiveFoundation", "ReactiveTestSupport",
      ],
      swiftSettings: settings),
    // A program that defines every name of CombineExtras itself. Compiling it is the test.
    .testTarget(name: "NameCollisionTests", dependencies: ["PortableCombine"], swiftSettings: settings),
    .testTarget(
      name: "SluiceWireTests", dependencies: ["SluiceWire", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "SluiceLogTests", dependencies: ["SluiceLog", "SluiceWire", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceSessionTests", dependencies: ["SluiceSession", "SluiceWire", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceHTTPTests", dependencies: ["SluiceHTTP", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "SluiceWebSocketTests",
      dependencies: ["SluiceWebSocket", "SluiceHTTP", "SluiceTLS", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceMQTTTests", dependencies: ["SluiceMQTT", "SluiceWire", "TestSupport"],
      swiftSettings: settings),
    // Real servers of a cluster's engine, and their clients.
    .target(
      name: "EngineTestSupport",
      dependencies: ["SluiceCluster", "SluiceStore", "SluiceNATS", "SluiceIO", "TestSupport"],
      path: "Tests/EngineTestSupport", swiftSettings: settings),
    // A disk that fails when a test requests it: intercepts calls between the store's engine and the system.
    .target(name: "FaultyDisk", path: "Tests/FaultyDisk"),
    .testTarget(
      name: "SluiceStoreTests",
      dependencies: [
        "SluiceStore", "SluiceStoreLMDB", "SluiceCluster", "SluiceNATS", "SluiceIO", "SluiceWire", "CLMDB",
        "FaultyDisk", "EngineTestSupport", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceIOTests", dependencies: ["SluiceIO", "SluiceSimulation", "SluiceTLS", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceTLSTests", dependencies: ["SluiceTLS", "SluiceIO", "SluiceSimulation", "TestSupport"],
      swiftSettings: settings),
    // The engine of a cluster in simulation: the behaviour of nats-server that SluiceNATS uses.
    .target(
      name: "SluiceEngineModel", dependencies: ["SluiceNATS", "SluiceIO", "SluiceSimulation"],
      path: "Tests/SluiceEngineModel", swiftSettings: settings),
    .testTarget(
      name: "SluiceNATSTests",
      dependencies: [
        "SluiceNATS", "SluiceTLS", "SluiceIO", "SluiceSimulation", "SluiceEngineModel", "EngineTestSupport",
        "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceDoorsTests",
      dependencies: [
        "SluiceDoors", "SluiceCluster", "SluiceCommand", "SluiceHTTP", "SluiceWebSocket", "SluiceMQTT",
        "SluiceBroker", "SluiceTopics",
        "SluiceStore", "SluiceNATS", "SluiceAccess", "SluiceTLS", "SluiceIO", "SluiceSimulation",
        "SluiceEngineModel", "SluiceWire", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceClusterTests",
      dependencies: [
        "SluiceCluster", "SluiceStore", "SluiceNATS", "SluiceWire", "SluiceIO", "SluiceSimulation",
        "SluiceEngineModel", "EngineTestSupport", "TestSupport",
      ],
      swiftSettings: settings),
    // Nodes with brokers, their engine and clients on one thread, determined by a seed.
    .testTarget(
      name: "ClusterSimulationTests",
      dependencies: [
        "SluiceCluster", "SluiceBroker", "SluiceTopics", "SluiceClient", "SluiceStore", "SluiceNATS",
        "SluiceWire", "SluiceIO", "SluiceSimulation", "SluiceEngineModel", "ReactiveCore", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceAccessTests", dependencies: ["SluiceAccess", "SluiceTLS", "SluiceWire", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceBrokerTests",
      dependencies: [
        "SluiceBroker", "SluiceTopics", "SluiceAccess", "SluiceWire", "SluiceSession", "SluiceLog",
        "SluiceStore", "SluiceIO",
        "SluiceSimulation", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceClientTests",
      dependencies: [
        "SluiceClient", "CombineExtras", "SluiceBroker", "SluiceAccess", "SluiceTLS", "ReactiveCore",
        "SluiceIO", "SluiceSimulation", "SluiceWire", "SluiceSession", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceClientFoundationTests",
      dependencies: [
        "SluiceClientFoundation", "SluiceBroker", "ReactiveCore", "SluiceIO", "SluiceSimulation",
        "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceCommandTests",
      dependencies: [
        "SluiceCommand", "SluiceDaemon", "SluiceTool", "SluiceBroker", "SluiceClient", "SluiceAccess",
        "SluiceDoors", "SluiceCluster", "SluiceNATS", "SluiceTLS", "SluiceIO", "SluiceWire", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SluiceAdminTests",
      dependencies: [
        "SluiceAdmin", "SluiceBroker", "SluiceAccess", "SluiceCommand", "SluiceTLS", "SluiceIO", "SluiceWire",
        "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SimulationTests",
      dependencies: [
        "SluiceBroker", "SluiceClient", "SluiceAccess", "SluiceIO", "SluiceSimulation", "SluiceSession",
        "SluiceLog",
        "SluiceStore", "SluiceStoreLMDB", "SluiceWire", "CMalloc",
        "ReactiveCore", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "IntegrationTests",
      dependencies: [
        "SluiceDaemon", "SluiceTool", "SluiceCommand", "SluiceClient", "SluiceAccess", "SluiceStore",
        "SluiceStoreLMDB", "SluiceTLS",
        "SluiceNATS", "ReactiveCore", "SluiceIO", "SluiceWire", "CLinux", "Ticker", "WorkQueue", "Chat",
        "BackPressure", "EngineTestSupport", "TestSupport",
      ],
      swiftSettings: settings),
  ],
  cxxLanguageStandard: .cxx17
)

// For builds that would otherwise take too long, such as those with a sanitizer: only these tests and their dependencies.
if let tests = Context.environment["SLUICE_TESTS"], !tests.isEmpty {
  var needed = Set(tests.split(separator: ",").map(String.init))
  for target in package.targets.reversed() where needed.contains(target.name) {
    for case .byNameItem(let name, _) in target.dependencies { needed.insert(name) }
  }
  package.targets.removeAll { !needed.contains($0.name) }
  package.products = []
}
