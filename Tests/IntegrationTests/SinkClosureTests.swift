import Foundation
import TestSupport
import Testing

/// Compiler errors for closures passed to the `sink` of a topic. Programs are type-checked, not built.
@Suite(.onItsOwnThread) struct SinkClosureTests {
  /// The exit code of the compiler for a `main.swift`, and its messages.
  private func check(_ body: String) throws -> (exit: ChildProcess.Exit, text: String) {
    let directory = try TemporaryDirectory()
    let file = URL(filePath: directory.path).appending(path: "main.swift")
    let program = """
      import ReactiveCore
      import SluiceClient

      let client = try await Client.connect(to: "127.0.0.1:7420")
      var count = 0
      \(body)
      """
    try Data(program.utf8).write(to: file)
    let modules = URL(filePath: try BuiltProduct.path("sluice")).deletingLastPathComponent()
      .appending(path: "Modules")
    let sources = URL(filePath: #filePath).appending(path: "../../../Sources").standardized
    let maps = try FileManager.default.contentsOfDirectory(at: sources, includingPropertiesForKeys: nil)
      .map { $0.appending(path: "module.modulemap").path }.filter(FileManager.default.fileExists)
    let compiler = try ChildProcess(
      "/usr/bin/env",
      ["swiftc", "-typecheck", "-swift-version", "6", "-I", modules.path]
        + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] } + [file.path])
    return (try compiler.waitForExit(within: 600), compiler.standardError.text)
  }

  @Test func closuresThatTouchNothingAreTaken() throws {
    let (exit, text) = try check(
      """
      let records = client.topic("t").sink { print($0) } receiveValue: { print($0.string) }
      let events = client.topic("t").events.sink { _ in } receiveValue: { print($0) }
      """)
    #expect(exit == .code(0), "\(text)")
  }

  @Test(arguments: [
    #"let a = client.topic("t").sink { _ in } receiveValue: { _ in count += 1 }"#,
    #"let a = client.topic("t").sink { _ in count += 1 } receiveValue: { _ in }"#,
    #"let a = client.topic("t").events.sink { _ in } receiveValue: { _ in count += 1 }"#,
    #"let a = client.topic("t").decoded { $0.count }.sink { _ in } receiveValue: { count += $0 }"#,
    #"let a = client.topics(matching: "t.*").sink { _ in } receiveValue: { _ in count += 1 }"#,
  ])
  func closuresThatChangeStateOfTheMainActorAreRefused(_ line: String) throws {
    let (exit, text) = try check(line)
    #expect(exit == .code(1), "\(text)")
    #expect(
      text.contains("main actor-isolated var 'count' can not be mutated from a nonisolated context"),
      "\(text)")
  }

  @Test func closuresOfAnActorsClassAreRefused() throws {
    let (exit, text) = try check(
      """
      @MainActor final class Model {
        var values: [String] = []
        var subscription: AnyCancellable?
        func start(_ client: Client) {
          subscription = client.topic("t").sink { _ in } receiveValue: { self.values.append($0.string) }
        }
      }
      """)
    #expect(exit == .code(1), "\(text)")
    #expect(text.contains("main actor-isolated property 'values'"), "\(text)")
  }

  /// The compiler can't detect this case: see the article on sharing topics.
  @Test func behindAnOperatorTheCompilerTakesThem() throws {
    let (exit, text) = try check(
      #"let a = client.topic("t").map(\.string).sink { _ in } receiveValue: { _ in count += 1 }"#)
    #expect(exit == .code(0), "\(text)")
  }
}
