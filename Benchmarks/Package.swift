// swift-tools-version: 6.2

import PackageDescription

// The benchmark, separate from the package that it measures: swift run -c release --package-path Benchmarks sluice-bench
let package = Package(
  name: "benchmarks",
  products: [
    .executable(name: "sluice-bench", targets: ["SluiceBench"])
  ],
  dependencies: [.package(name: "sluice", path: "..")],
  targets: [
    // Counts the benchmark's allocations; replaces malloc in the program that links it.
    .target(name: "CAllocationCount"),
    .executableTarget(
      name: "SluiceBench",
      dependencies: [
        "CAllocationCount",
        .product(name: "SluiceBroker", package: "sluice"),
        .product(name: "SluiceClient", package: "sluice"),
        .product(name: "SluiceSimulation", package: "sluice"),
        .product(name: "PortableCombine", package: "sluice"),
        .product(name: "CombineExtras", package: "sluice"),
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ]),
  ]
)
