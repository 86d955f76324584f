import Foundation

/// The environment for compiling and running blocks: the built modules and programs, and a directory for each task.
final class Workbench {
  let root: String
  /// The folder with the built programs, which contains `Modules`.
  let programs: String
  /// Whether the script has its own namespaces, with a network in which port 7420 is free, and its own /etc/hosts.
  let isIsolated: Bool
  /// How many seconds a program or a shell command may take. Only failures take so long.
  var patience: Double = 60
  /// How many seconds a background process may take to print its output.
  var lateness: Double = 60
  /// The broker that the tutorials share.
  private var tutorialBroker: TestBroker?
  /// The cluster of the page whose blocks run.
  private var pageCluster: TestCluster?
  private let work: String
  private var directories = 0
  private var maps: [String] = []

  init(root: String, programs: String, work: String, isIsolated: Bool) throws {
    self.root = root
    self.programs = programs
    self.work = work
    self.isIsolated = isIsolated
    let sources = root + "/Sources"
    for module in try FileManager.default.contentsOfDirectory(atPath: sources).sorted() {
      let map = "\(sources)/\(module)/module.modulemap"
      if FileManager.default.fileExists(atPath: map) { maps += ["-Xcc", "-fmodule-map-file=\(map)"] }
    }
  }

  /// A new, empty directory. Programs find the package's scripts in it, as in the package.
  func directory(_ name: String) throws -> String {
    directories += 1
    let path = "\(work)/\(directories)-\(name)"
    try FileManager.default.createDirectory(atPath: path + "/home", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(atPath: path + "/block", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: path + "/block/scripts", withDestinationPath: root + "/scripts")
    return path
  }

  /// The caller's environment with the built programs first in PATH, and without their settings.
  func environment(home: String? = nil) -> [String: String] {
    var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("SLUICE") }
    environment["PATH"] = programs + ":" + (environment["PATH"] ?? "/usr/bin:/bin")
    environment["SWIFT_BACKTRACE"] = "enable=no"
    if let home { environment["HOME"] = home }
    return environment
  }

  // MARK: Other programs

  func has(program: String) -> Bool {
    (environment()["PATH"] ?? "").split(separator: ":").contains {
      FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
    }
  }

  /// Starts the broker that the tutorials share, unless it runs.
  func startTutorials() throws {
    guard tutorialBroker == nil else { return }
    tutorialBroker = try TestBroker(on: self, in: directory("tutorials"))
  }

  /// Stops the broker that the tutorials share, since the next block with another broker needs its port.
  func endTutorials() throws {
    let trouble = tutorialBroker?.stop()
    tutorialBroker = nil
    if let trouble { throw Trouble("tutorials: " + trouble) }
  }

  /// Returns the page's cluster, and starts it if it doesn't run; nil if the engine isn't installed.
  func cluster() throws -> TestCluster? {
    try endTutorials()
    if pageCluster == nil { pageCluster = try TestCluster(on: self) }
    return pageCluster
  }

  /// Ends the cluster of a page after its last block.
  func endCluster() throws {
    try pageCluster?.erase()
    pageCluster = nil
  }

  // MARK: The compiler

  /// Links the package's modules into one library, from the objects of the existing sources. A folder of objects also contains those of removed
  /// sources.
  func linkLibrary() throws {
    var objects: [String] = []
    for module in try FileManager.default.contentsOfDirectory(atPath: root + "/Sources").sorted() {
      let files = Self.files(in: "\(root)/Sources/\(module)", with: ".swift")
      if module == "Examples" || files.isEmpty { continue }
      if try files.contains(where: { try String(contentsOfFile: $0, encoding: .utf8).contains("\n@main\n") })
      {
        continue
      }
      objects += files.map { "\(programs)/\(module).build/\(URL(filePath: $0).lastPathComponent).o" }
    }
    if let missing = objects.first(where: { !FileManager.default.fileExists(atPath: $0) }) {
      throw Trouble("\(missing) isn't there: build the package first, by scripts/check.sh")
    }
    let list = work + "/objects"
    try objects.joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
    let (code, messages) = try swiftc(["-emit-library", "-o", work + "/libpackage.so", "@" + list], in: work)
    guard code == 0 else { throw Trouble("the package's modules can't be linked:\n" + messages) }
  }

  /// Compiles a file without warnings and links it; or only checks types. Returns the compiler's exit code and messages.
  func compile(_ source: String, in directory: String, typesOnly: Bool = false) throws -> (Int32, String) {
    var arguments =
      ["-swift-version", "6", "-module-name", "Example", "-I", programs + "/Modules"] + maps
    if typesOnly {
      arguments += ["-suppress-warnings", "-typecheck"]
    } else {
      arguments += [
        "-warnings-as-errors", "-L", work, "-lpackage", "-Xlinker", "-rpath", "-Xlinker", work, "-o",
        directory + "/example",
      ]
    }
    return try swiftc(arguments + [source], in: directory)
  }

  private func swiftc(_ arguments: [String], in directory: String) throws -> (Int32, String) {
    let log = directory + "/compiler"
    let compiler = try Child(
      ["swiftc"] + arguments, directory: directory, environment: environment(), output: log, errors: log)
    defer { compiler.kill() }
    guard let code = compiler.waitForEnd(seconds: 600) else { throw Trouble("the compiler doesn't end") }
    return (code, Self.text(of: log))
  }

  // MARK: Files

  /// The files below a folder with that suffix, in order.
  static func files(in folder: String, with suffix: String) -> [String] {
    let found = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    return found.filter { $0.hasSuffix(suffix) }.sorted().map { folder + "/" + $0 }
  }

  static func text(of file: String) -> String {
    String(decoding: FileManager.default.contents(atPath: file) ?? Data(), as: UTF8.self)
  }
}

/// A broker on the port that the documentation uses.
struct TestBroker {
  private let process: Child

  private static let doors = [
    "127.0.0.1:7420", "http://127.0.0.1:7480", "ws://127.0.0.1:7481", "mqtt://127.0.0.1:1883",
  ]

  /// The broker of a block, if it has one of its own.
  static func start(for block: Block, on bench: Workbench, in directory: String) throws -> TestBroker? {
    if block.has(.tutorial) {
      try bench.startTutorials()
      return nil
    }
    guard block.has(.doors) || block.has(.broker) else { return nil }
    try bench.endTutorials()
    if block.has(.doors) {
      return try TestBroker(on: bench, in: directory, doors.flatMap { ["--listen", $0] })
    }
    return try TestBroker(on: bench, in: directory)
  }

  /// Starts the broker and waits until it is ready.
  init(on bench: Workbench, in directory: String, _ options: [String] = []) throws {
    process = try Child(
      ["sluiced"] + options, directory: directory, environment: bench.environment(home: directory + "/home"),
      output: directory + "/broker.output", errors: directory + "/broker.log")
    let output = process.output
    guard process.wait(seconds: 60, until: { Workbench.text(of: output).hasSuffix("sluiced ready\n") }) else {
      process.kill()
      throw Trouble("the broker doesn't become ready:\n" + Workbench.text(of: directory + "/broker.log"))
    }
  }

  /// Stops the broker. Returns an error message if its end wasn't as expected.
  func stop() -> String? {
    process.kill(SIGTERM)
    let code = process.waitForEnd(seconds: 60)
    process.kill()
    if code == 0 { return nil }
    return "the broker " + (code.map { "ended with \($0)" } ?? "didn't end")
      + ":\n" + Workbench.text(of: process.errors)
  }
}
