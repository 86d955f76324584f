// swift-tools-version: 6.2

import PackageDescription

// Targets stand bottom-up: a target may depend only on what is above it in this list.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// What reads or writes memory by address says so, word for word: `unsafe`. Tests needn't.
let strictSettings = settings + [.strictMemorySafety()]

let package = Package(
  name: "sluice",
  products: [
    .library(name: "PortableCombine", targets: ["PortableCombine"]),
    .library(name: "CombineExtras", targets: ["CombineExtras"]),
    .library(name: "SluiceClient", targets: ["SluiceClient", "SluiceClientFoundation"]),
    .library(
      name: "SluiceBroker", targets: ["SluiceBroker", "SluiceTopics", "SluiceStore", "SluiceStoreLMDB"]),
    // For tests of programs with a broker or a client in them.
    .library(name: "SluiceSimulation", targets: ["SluiceSimulation"]),
    .executable(name: "sluiced", targets: ["SluiceDaemon"]),
    .executable(name: "sluice", targets: ["SluiceTool"]),
  ],
  targets: [
    // epoll, eventfd, signalfd: not in the toolchain's Glibc overlay.
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CMalloc", path: "Tests/CMalloc"),
    // The durable store's engine, and its checksums.
    .systemLibrary(name: "CLMDB", providers: [.apt(["liblmdb-dev"])]),
    .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
    // TLS, and the cryptography of passwords and tokens.
    .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
    // Compression of WebSocket messages.
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
    // Reads the configuration file, by toml++, which is headers alone.
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

    // The protocol, the log, what outlives the process, the event loops.
    .target(name: "SluiceWire", swiftSettings: strictSettings),
    .target(name: "SluiceLog", dependencies: ["SluiceWire"], swiftSettings: strictSettings),
    // The two sides of the protocol as values, without sockets: a frame in, an action out. A broker may speak as a client too.
    .target(name: "SluiceSession", dependencies: ["SluiceWire"], swiftSettings: strictSettings),
    // The server's halves of other protocols, as values without sockets: bytes and events in, bytes and actions out.
    .target(name: "SluiceHTTP", swiftSettings: strictSettings),
    .target(name: "SluiceWebSocket", dependencies: ["SluiceHTTP", "CZlib"], swiftSettings: strictSettings),
    .target(name: "SluiceMQTT", dependencies: ["SluiceWire"], swiftSettings: strictSettings),
    .target(name: "SluiceStore", dependencies: ["SluiceWire", "CXXHash"], swiftSettings: strictSettings),
    // The embedded engine. Programs choose it; the broker knows the protocol alone.
    .target(
      name: "SluiceStoreLMDB", dependencies: ["SluiceStore", "SluiceWire", "CLMDB", "CXXHash"],
      swiftSettings: strictSettings),
    .target(name: "SluiceIO", dependencies: ["CLinux"], swiftSettings: strictSettings),
    // The same loops and network in simulated time, in one thread and from a seed. For tests and
    // benchmarks: no other product has it.
    .target(name: "SluiceSimulation", dependencies: ["SluiceIO"], swiftSettings: strictSettings),
    // The only one that sees OpenSSL: TLS as one more byte stream, and hashes and signatures.
    .target(name: "SluiceTLS", dependencies: ["SluiceIO", "COpenSSL"], swiftSettings: strictSettings),
    // The client of NATS and JetStream, the engine that stores what several nodes share.
    .target(
      name: "SluiceNATS", dependencies: ["SluiceIO", "SluiceTLS"], swiftSettings: strictSettings),
    // Who may connect, and what they may do then: users, tokens, permissions.
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
    // Several nodes: shards of topics stored on JetStream, and the broker as a node.
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

    // The programs, and what their command lines have in common.
    .target(name: "SluiceCommand", dependencies: ["SluiceIO", "SluiceWire"], swiftSettings: strictSettings),
    // Other protocols' clients as streams of the native protocol.
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
      // The page becomes part of the code: the program stays one file.
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
    // To read and to run: swift run Ticker.
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

    // Puts SluiceClient through the scenarios of Clients/conformance: scripts/conformance.sh swift.
    .executableTarget(
      name: "ConformanceDriver", dependencies: ["SluiceClient", "PortableCombine"],
      path: "Clients/conformance/drivers/swift", swiftSettings: settings),

    // Tests: a folder per module, and what they share.
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
    // Real servers of the engine of several nodes, and clients of them.
    .target(
      name: "EngineTestSupport",
      dependencies: ["SluiceCluster", "SluiceStore", "SluiceNATS", "SluiceIO", "TestSupport"],
      path: "Tests/EngineTestSupport", swiftSettings: settings),
    // A disk that fails when a test wants it to: stands between the store's engine and the system.
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
    // The engine of several nodes in a simulated world: what nats-server does, as far as SluiceNATS uses it.
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
    // Nodes with brokers, their engine and clients in one thread, from a seed.
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

// For builds that would take too long otherwise, such as one with a sanitizer: no more than these tests, and what they need.
if let tests = Context.environment["SLUICE_TESTS"], !tests.isEmpty {
  var needed = Set(tests.split(separator: ",").map(String.init))
  for target in package.targets.reversed() where needed.contains(target.name) {
    for case .byNameItem(let name, _) in target.dependencies { needed.insert(name) }
  }
  package.targets.removeAll { !needed.contains($0.name) }
  package.products = []
}
