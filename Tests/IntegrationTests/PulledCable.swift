import Glibc
import TestSupport

/// A network namespace at the other end of a virtual cable that can be pulled: packets are lost without either side being told.
final class PulledCable {
  private static let tool = "/sbin/ip"

  /// This end's address.
  let near: String
  /// Runs what follows it at the far end.
  var command: [String] { [Self.tool, "netns", "exec", name] }

  private let name: String

  static var isPossible: Bool {
    guard getuid() == 0, access(tool, X_OK) == 0, let cable = try? PulledCable() else { return false }
    return (try? cable.pull()) != nil
  }

  init() throws {
    // A name, and a network among those for documentation, of this test's own.
    let number = UInt8.random(in: 1...62)
    name = "sluice\(getpid())x\(number)"
    near = "203.0.113.\(number * 4 + 1)"
    let far = "203.0.113.\(number * 4 + 2)"
    try run("netns", "add", name)
    try run("link", "add", "slc\(number)a", "type", "veth", "peer", "name", "slc\(number)b", "netns", name)
    try run("address", "add", "\(near)/30", "dev", "slc\(number)a")
    try run("link", "set", "slc\(number)a", "up")
    try run("-n", name, "address", "add", "\(far)/30", "dev", "slc\(number)b")
    try run("-n", name, "link", "set", "slc\(number)b", "up")
    device = "slc\(number)b"
  }

  private var device = ""

  deinit {
    // The devices go with the namespace.
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
