import Glibc
import TestSupport

/// A network namespace at the far end of a virtual cable that can be pulled: packets are then lost without notice to either side.
final class PulledCable {
  private static let tool = "/sbin/ip"

  /// This end's address.
  let near: String
  /// A command prefix that runs a program at the far end.
  var command: [String] { [Self.tool, "netns", "exec", name] }

  private let name: String
  private let device: String

  static var isPossible: Bool {
    guard getuid() == 0, access(tool, X_OK) == 0, let cable = try? PulledCable.laid() else { return false }
    return (try? cable.pull()) != nil
  }

  /// Creates a cable whose name and documentation network no other run is using.
  static func laid() throws -> PulledCable {
    let numbers = (UInt8(1)...62).shuffled()
    for number in numbers.prefix(8) {
      if let cable = try? PulledCable(number) { return cable }
    }
    return try PulledCable(numbers[8])
  }

  private init(_ number: UInt8) throws {
    name = "sluice\(getpid())x\(number)"
    near = "203.0.113.\(number * 4 + 1)"
    device = "slc\(number)b"
    let far = "203.0.113.\(number * 4 + 2)"
    try run("netns", "add", name)
    try run("link", "add", "slc\(number)a", "type", "veth", "peer", "name", "slc\(number)b", "netns", name)
    try run("address", "add", "\(near)/30", "dev", "slc\(number)a")
    try run("link", "set", "slc\(number)a", "up")
    try run("-n", name, "address", "add", "\(far)/30", "dev", "slc\(number)b")
    try run("-n", name, "link", "set", "slc\(number)b", "up")
  }

  deinit {
    // The devices are removed with the namespace.
    try? run("netns", "delete", name)
  }

  func pull() throws {
    try run("-n", name, "link", "set", device, "down")
  }

  private func run(_ arguments: String...) throws {
    let process = try ChildProcess(Self.tool, arguments)
    let exit = try process.waitForExit()
    try require(exit == .code(0), "ip \(arguments.joined(separator: " ")): \(process.messages)")
  }
}
