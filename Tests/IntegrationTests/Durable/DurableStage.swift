import Glibc
import TestSupport
import Testing

/// A directory for durable topics, and the brokers that use it one after another.
final class DurableStage {
  private let directory: TemporaryDirectory
  private let options: [String]
  private(set) var broker: BrokerProcess
  /// The store's directory.
  let data: String
  /// The address of every broker.
  let address: String

  /// - Parameter options: the options of every broker.
  convenience init(_ options: String...) throws {
    try self.init(options: options)
  }

  init(options: [String]) throws {
    directory = try TemporaryDirectory()
    data = directory.file("data")
    self.options = options
    broker = try BrokerProcess(options: ["--data", data] + options)
    address = broker.address
  }

  deinit {
    broker.process.stop()
    removeStore(data)
  }

  /// Stops the broker, in order by default, and starts another one at the same address.
  func restart(_ signal: Int32 = SIGTERM, _ more: String...) throws {
    broker.process.signal(signal)
    let exit = try broker.process.waitForExit()
    #expect(exit == (signal == SIGKILL ? .signal(SIGKILL) : .code(0)), "\(broker.process.messages)")
    try start(more)
  }

  /// Starts another broker at the same address after the last one has ended.
  func start(_ more: [String] = []) throws {
    broker = try BrokerProcess(options: ["--data", data, "--listen", address] + options + more)
  }

  /// Runs `sluice`. Returns its output.
  @discardableResult
  func sluice(
    _ arguments: String..., input: ChildProcess.Input = .nothing, code: Int32 = 0,
    at location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let process = try ChildProcess.sluice(arguments, server: broker.address, input: input)
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return process.standardOutput.text
  }
}
